import { isJsonObject, objectAt, stringAt } from './json.ts';
import type { JsonObject } from './resource.ts';
import { requestError, statusError, type RequestFacts } from './status-error.ts';

/** One thing that happened. Bookmarks carry nothing but how far the stream has come. */
export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: JsonObject; readonly resourceVersion: string }
  | {
      readonly type: 'BOOKMARK';
      readonly resourceVersion: string;
      /** All that was there when the watch began has been told. */
      readonly initialEventsEnd?: true;
    };

/** With the value `true` on the bookmark after the last object that was there when a watch began. */
const initialEventsEndAnnotation = 'k8s.io/initial-events-end';

const NEWLINE = 0x0a;

/**
 * The events of a watch's body: one JSON document a line. Ends when the body ends between two lines. Throws a KubeError
 * for an ERROR event (410 as `Gone`), for anything that is not an event, for a line over the cap, and for a body that
 * ends within a line: what was lost there cannot be known.
 */
export async function* readWatchEvents(
  body: AsyncIterable<Uint8Array>,
  request: RequestFacts,
  maxLineBytes: number,
): AsyncGenerator<WatchEvent, void, void> {
  // Bytes are joined before they are decoded, so a character that is split over two chunks stays whole.
  let pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, start);
      const piece = chunk.subarray(start, end === -1 ? chunk.length : end);
      bytes += piece.length;
      if (bytes > maxLineBytes) {
        throw requestError(request, 'TooLarge', `an event of more than ${maxLineBytes} bytes`, { status: 200 });
      }
      if (piece.length > 0) pieces.push(piece);
      if (end === -1) break;
      if (bytes > 0) yield parseEvent(Buffer.concat(pieces, bytes).toString('utf8'), request);
      pieces = [];
      bytes = 0;
      start = end + 1;
    }
  }
  if (bytes > 0)
    throw requestError(request, 'Malformed', 'the stream ended in the middle of an event', { status: 200 });
}

function parseEvent(line: string, request: RequestFacts): WatchEvent {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    throw requestError(request, 'Malformed', 'a line of the stream is not JSON', { status: 200 });
  }
  if (!isJsonObject(event) || !isJsonObject(event['object'])) {
    throw requestError(request, 'Malformed', 'a line of the stream is not a watch event', { status: 200 });
  }
  const { type, object } = event;
  if (type === 'ERROR') {
    const code = object['code'];
    throw statusError(request, { status: typeof code === 'number' ? code : 500, body: object });
  }
  const metadata = objectAt(object, 'metadata');
  const resourceVersion = stringAt(metadata, 'resourceVersion');
  if (resourceVersion === undefined) {
    throw requestError(request, 'Malformed', 'a watch event without a resourceVersion', { status: 200 });
  }
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      return { type, object, resourceVersion };
    case 'BOOKMARK': {
      const isEnd = objectAt(metadata, 'annotations')[initialEventsEndAnnotation] === 'true';
      return isEnd ? { type, resourceVersion, initialEventsEnd: true } : { type, resourceVersion };
    }
    default:
      throw requestError(request, 'Malformed', 'a watch event of unknown type', { status: 200 });
  }
}
