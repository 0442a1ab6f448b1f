import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PageSize } from '../../../src/kube/page-size.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

describe('the page size', () => {
  test('starts small, grows fourfold at most and stops at 500', () => {
    const size = new PageSize();
    const limits = [size.limit];
    for (let page = 0; page < 3; page += 1) {
      size.saw(size.limit, (size.limit * KIB) / 2);
      limits.push(size.limit);
    }
    expect(limits).toEqual([100, 400, 500, 500]);
  });

  test('falls at once when items are large, and finds its way back', () => {
    const size = new PageSize();
    size.saw(10, 10 * 64 * KIB);
    expect(size.limit).toBe(4);
    size.saw(4, 2 * KIB);
    size.saw(16, 8 * KIB);
    size.saw(64, 32 * KIB);
    size.saw(256, 128 * KIB);
    expect(size.limit).toBe(500);
  });

  test('is one at least, for items over the target too', () => {
    const size = new PageSize();
    size.saw(1, 20 * MIB);
    expect(size.limit).toBe(1);
  });

  test('is larger late in a long list, up to a bound, and what the next one may have starts over', () => {
    const size = new PageSize({ max: 100_000 });
    const pages: number[] = [];
    for (const read of [0, 64, 72, 256, 1024]) {
      size.begin();
      size.saw(1024, read * MIB);
      // Grown fourfold at most from page to page.
      for (let page = 0; page < 6; page += 1) size.saw(1, KIB);
      pages.push(size.limit);
    }
    expect(pages).toEqual([256, 256, 512, 2048, 2048]);
  });

  test('learns nothing from an empty page', () => {
    const size = new PageSize();
    size.saw(0, 300);
    expect(size.limit).toBe(100);
  });

  test('is halved for a page that was too large, until one item is left', () => {
    const size = new PageSize({ initial: 5 });
    expect([size.shrink(), size.limit, size.shrink(), size.limit, size.shrink(), size.limit]).toEqual([
      true,
      2,
      true,
      1,
      false,
      1,
    ]);
  });

  test('keeps pages of like items near the target, whatever size they are', () => {
    fc.assert(
      fc.property(fc.integer({ min: 200, max: 1_500_000 }), (itemBytes) => {
        const size = new PageSize();
        for (let page = 0; page < 5; page += 1) {
          // The first page of large items makes a long list by itself.
          size.begin();
          size.saw(size.limit, size.limit * itemBytes);
        }
        expect(size.limit === 1 || size.limit * itemBytes <= 256 * KIB).toBe(true);
        expect(size.limit === 500 || (size.limit + 1) * itemBytes > 256 * KIB).toBe(true);
      }),
    );
  });
});
