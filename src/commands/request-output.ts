import type { JsonObject } from '../kube/resource.ts';
import { listAt, nameAt, objectAt, textAt, timeAt, valueAt } from '../oadp/read.ts';
import { formatDuration } from '../settings/duration.ts';
import { cell } from './output.ts';
import { pairs, table } from './table.ts';

/** JSON of `request`: what identifies the request, and its status as it stands in the object. */
export interface RequestDocument {
  readonly namespace: string;
  readonly name: string;
  readonly status: JsonObject;
}

export function requestDocument(request: JsonObject): RequestDocument {
  return {
    namespace: nameAt(request, 'metadata', 'namespace') ?? '',
    name: nameAt(request, 'metadata', 'name') ?? '',
    status: objectAt(request, 'status') ?? { phase: 'Pending' },
  };
}

export function requestText({ namespace, name, status }: RequestDocument): string {
  const started = timeAt(status, 'startTime');
  const completed = timeAt(status, 'completionTime');
  const took = started === undefined || completed === undefined ? '' : formatDuration(completed - started);
  const history = objectAt(status, 'history');
  const optional = (label: string, text: string | undefined): [string, string][] =>
    text === undefined || text === '' ? [] : [[label, cell(text)]];
  const head = pairs([
    ['Request', cell(`${namespace}/${name}`)],
    ['Phase', cell(textAt(status, 'phase') ?? '')],
    ...optional('Took', took),
    ...optional('Message', messageOf(status)),
    ...optional('Last success', textAt(history, 'lastSuccessTime')),
    ...optional('Last failure', textAt(history, 'lastFailureTime')),
    ...optional('Failing since', textAt(history, 'failingSince')),
  ]);
  const written = rows(status, 'written', ['namespace', 'name', 'outcome', 'veleroBackup']);
  const skipped = rows(status, 'skipped', ['namespace', 'name', 'reason', 'message']);
  const failed = rows(status, 'failed', ['namespace', 'name', 'reason', 'message']);
  const parts = [
    head,
    list(status, 'written', ['NAMESPACE', 'NAME', 'OUTCOME', 'VELERO BACKUP'], written),
    list(status, 'skipped', ['NAMESPACE', 'NAME', 'SKIPPED', 'MESSAGE'], skipped),
    list(status, 'failed', ['NAMESPACE', 'NAME', 'FAILURE', 'MESSAGE'], failed),
  ];
  return parts.filter((part) => part !== '').join('\n');
}

/** What the condition `Complete` says of a request that is answered or under way. */
export function messageOf(status: JsonObject): string | undefined {
  const complete = listAt(status, 'conditions').find((condition) => textAt(condition, 'type') === 'Complete');
  return textAt(complete, 'message');
}

type List = 'written' | 'skipped' | 'failed';

function rows(status: JsonObject, name: List, fields: readonly string[]): string[][] {
  return listAt(status, name).map((entry) => fields.map((field) => cell(textAt(entry, field) ?? '')));
}

function list(status: JsonObject, name: List, headers: readonly string[], entries: readonly string[][]): string {
  if (entries.length === 0) return '';
  const omitted = valueAt(status, 'omitted', name);
  const more = typeof omitted === 'number' && omitted > 0 ? `and ${omitted} more\n` : '';
  return table(headers, entries) + more;
}
