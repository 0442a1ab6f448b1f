import { describe, expect, test } from 'vitest';
import { ProgressLine } from '../../../src/commands/progress.ts';
import { Sink } from './support.ts';

const terminal = { columns: 20, color: true };
const erase = '\r\u001b[K';

function progressOn(given: typeof terminal | undefined) {
  const stream = new Sink();
  const clock = { now: 0 };
  return { stream, clock, line: new ProgressLine(stream, given, () => clock.now) };
}

describe('progress', () => {
  test('is shown on one line once work takes longer than a second, ten times a second at most', () => {
    const { stream, clock, line } = progressOn(terminal);
    line.show(1, 9, 'kinds read');
    expect(stream.text).toBe('');
    clock.now = 1_000;
    line.show(2, 9, 'kinds read');
    line.show(3, 9, 'kinds read');
    clock.now = 1_100;
    line.show(4, 9, 'kinds read');
    expect(stream.text).toBe(`${erase}kinds read: 2 of 9${erase}kinds read: 4 of 9`);
  });

  test('is taken away by the last part, or for something else, and only once', () => {
    const { stream, clock, line } = progressOn(terminal);
    line.clear();
    clock.now = 1_000;
    line.show(1, 2, 'x');
    line.show(2, 2, 'x');
    line.clear();
    expect(stream.text).toBe(`${erase}x: 1 of 2${erase}`);
  });

  test('makes room for what is written before it', async () => {
    const { stream, clock, line } = progressOn(terminal);
    const log = line.before(stream);
    clock.now = 1_000;
    line.show(1, 2, 'x');
    await new Promise((done) => log.write('a line of the log\n', done));
    await new Promise((done) => log.write('another\n', done));
    expect(stream.text).toBe(`${erase}x: 1 of 2${erase}a line of the log\nanother\n`);
  });

  test('never takes a second line', () => {
    const { stream, clock, line } = progressOn(terminal);
    clock.now = 1_000;
    line.show(1, 2, 'something with a long name');
    expect(stream.text.slice(erase.length)).toHaveLength(19);
  });

  test('is not shown without a terminal', () => {
    const { stream, clock, line } = progressOn(undefined);
    clock.now = 60_000;
    line.show(1, 2, 'x');
    line.clear();
    expect(stream.text).toBe('');
  });
});
