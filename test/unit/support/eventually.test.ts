import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';

describe('eventually', () => {
  it('returns what the assertion returns once it holds', async () => {
    let tries = 0;
    const value = await eventually(() => {
      tries += 1;
      if (tries < 3) throw new Error('not yet');
      return tries;
    });
    expect(value).toBe(3);
  });

  it('throws the last error, with the time waited, when it never holds', async () => {
    let tries = 0;
    await expect(
      eventually(
        () => {
          tries += 1;
          return Promise.reject(new Error(`try ${tries}`));
        },
        120,
        50,
      ),
    ).rejects.toThrow(/^not within 120 ms: try [3-9]$/);
  });
});
