import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import {
  tellTerminationLog,
  terminationLogPath,
  terminationText,
  type TerminationRecord,
} from '../../../src/commands/termination-log.ts';

const directory = mkdtempSync(join(tmpdir(), 'nab-sync-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

const record: TerminationRecord = {
  time: '2026-01-01T00:00:00.000Z',
  version: '0.1.0',
  command: 'once',
  exitCode: 1,
  code: 'Partial',
  message: '2 of 5 backups could not be brought back',
};

const failure = { namespace: 'team-a', name: 'nightly', reason: 'QuotaDenied', message: 'exceeded quota' } as const;

function read(text: string): Record<string, unknown> {
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4_096);
  return JSON.parse(text) as Record<string, unknown>;
}

describe('the termination log', () => {
  test('is one JSON object', () => {
    expect(read(terminationText({ ...record, failures: [failure] }))).toEqual({ ...record, failures: [failure] });
  });

  test('leaves out the last failures when there are too many, and says how many', () => {
    const failures = Array.from({ length: 1_000 }, () => failure);
    const { failures: kept, omittedFailures, message } = read(terminationText({ ...record, failures }));
    expect(message).toBe(record.message);
    const count = Array.isArray(kept) ? kept.length : 0;
    expect(count).toBeGreaterThan(20);
    expect(omittedFailures).toBe(1_000 - count);
  });

  test('cuts a message that is too long', () => {
    const { message } = read(terminationText({ ...record, message: 'x'.repeat(100_000) }));
    expect(message).toMatch(/^x{3000,}…$/);
  });

  test('is valid JSON of at most 4,096 bytes, whatever the texts', () => {
    const long = fc.array(fc.constantFrom('a', '"', '\\', '\n', '\u0000', 'ä', '夜', '🚀', '\ud83d'), {
      maxLength: 6_000,
    });
    fc.assert(
      fc.property(long, fc.integer({ min: 0, max: 60 }), (parts, count) => {
        const text = parts.join('');
        const failures = Array.from({ length: count }, () => ({ ...failure, message: text.slice(0, 300) }));
        expect(read(terminationText({ ...record, message: text, failures }))).toMatchObject({ code: 'Partial' });
      }),
      { numRuns: 50 },
    );
  });

  test('goes where flag or variable say while the settings are not known, else to Kubernetes’ own place', () => {
    const host = {
      environment: { TERMINATION_LOG: '/var' },
      stderrIsTerminal: false,
      exists: (path: string) => path === '/dev/termination-log',
      read: () => undefined,
    };
    expect(terminationLogPath({ 'termination-log': '/flag' }, host)).toBe('/flag');
    expect(terminationLogPath({}, host)).toBe('/var');
    expect(terminationLogPath({}, { ...host, environment: {} })).toBe('/dev/termination-log');
    expect(terminationLogPath({}, { ...host, environment: {}, exists: () => false })).toBeUndefined();
  });

  test('replaces what an earlier end left there', async () => {
    const path = join(directory, 'log');
    const streams = { out: new Writable(), error: new Writable() };
    await tellTerminationLog(path, { ...record, message: 'first, and longer' }, streams);
    await tellTerminationLog(path, { ...record, message: 'second' }, streams);
    expect(read(readFileSync(path, 'utf8'))).toMatchObject({ command: 'once', exitCode: 1, message: 'second' });
  });

  test('that cannot be written is told in one line, and does not hide why the process ended', async () => {
    let told = '';
    const error = new Writable({
      write(chunk, _encoding, done) {
        told += String(chunk);
        done();
      },
    });
    await tellTerminationLog(join(directory, 'none', 'log'), record, { out: new Writable(), error });
    expect(told).toMatch(/^nab-sync: cannot write the termination log ".*" \(--termination-log\): "ENOENT.*\n$/);
  });
});
