import { describe, expect, it } from 'vitest';
import { nacuuid } from '../../support/gen/live-objects.ts';

describe("a test object's NACUUID", () => {
  it.each([
    ['short names', 'team-a', 'daily'],
    ['a long name', 'team-a', 'n'.repeat(253)],
    ['a long namespace', 'n'.repeat(63), 'daily'],
    ['both long', 'n'.repeat(63), 'm'.repeat(253)],
  ])('is a label value and unique, with %s', (_, namespace, name) => {
    const id = nacuuid(namespace, name);
    expect(id).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])$/);
    expect(nacuuid(namespace, name)).not.toBe(id);
  });
});
