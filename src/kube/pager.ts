import { setImmediate } from 'node:timers/promises';
import type { KubeClient, ListPage } from './client.ts';
import type { Clock } from './clock.ts';
import { KubeError, policyFor } from './errors.ts';
import type { PageSize } from './page-size.ts';
import type { JsonObject, Resource } from './resource.ts';
import { retryDelay } from './retry-delay.ts';
import { requestError } from './status-error.ts';

export interface ListAllOptions {
  readonly client: Pick<KubeClient, 'listPage'>;
  readonly resource: Resource;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly pageSize: PageSize;
  /** An answer above this is asked for again with half as many items. */
  readonly pageCapBytes: number;
  /** Called with every page; what it does not keep is gone. */
  readonly onItems: (items: readonly JsonObject[]) => void;
  /** Called when the list starts over: whatever was gathered so far is void. */
  readonly onRestart: () => void;
  /** Tries of the first page; later ones get three, since what is already there would be lost with them. */
  readonly firstPageTries: number;
  readonly signal: AbortSignal | undefined;
  readonly clock: Clock;
  readonly random: () => number;
}

const LATER_PAGE_TRIES = 3;
const MAX_RESTARTS = 3;
const RETRY_BASE_MS = 250;
const RETRY_CAP_MS = 3_000;

/**
 * Reads a whole collection page by page and resolves with the resourceVersion to watch from. Rejects with the KubeError
 * of the page that could not be had; the collection is complete only when this resolves.
 *
 * A continue token lives for a few minutes. When it has expired (410) the rest would come from another moment than the
 * beginning, so the list starts over, a few times at most.
 */
export async function listAll(options: ListAllOptions): Promise<string> {
  for (let restarts = 0; ; restarts += 1) {
    try {
      return await listOnce(options);
    } catch (error) {
      const expired = error instanceof KubeError && error.code === 'Gone';
      if (!expired || restarts === MAX_RESTARTS) throw error;
      options.onRestart();
    }
  }
}

async function listOnce(options: ListAllOptions): Promise<string> {
  options.pageSize.begin();
  let step = await takeIn(options, pageWithRetries(options, undefined), undefined);
  // All pages are of one moment. Where a server says otherwise the earliest one is safe to watch from.
  const { resourceVersion } = step;
  while (step.coming !== undefined) step = await takeIn(options, step.coming, step.token);
  return resourceVersion;
}

/** Where a list is once a page was taken in. */
interface Step {
  readonly resourceVersion: string;
  /** Of the next page, if there is one. */
  readonly token: string | undefined;
  readonly coming: Promise<ListPage> | undefined;
}

/**
 * Takes in a page while the server makes the next one. A function by itself, so that nothing holds a page while the next is
 * waited for: its objects would outlive their youth, and stay until V8 cleans up as a whole.
 */
async function takeIn(
  options: ListAllOptions,
  arriving: Promise<ListPage>,
  itsToken: string | undefined,
): Promise<Step> {
  const { items, bytes, resourceVersion, continue: token } = await arriving;
  options.pageSize.saw(items.length, bytes);
  if (token !== undefined && token === itsToken) {
    const request = { verb: 'list', resource: options.resource, ref: { namespace: options.namespace } };
    throw requestError(request, 'Malformed', 'the same continue token twice', { status: 200 });
  }
  let coming: Promise<ListPage> | undefined;
  if (token !== undefined) {
    coming = pageWithRetries(options, token);
    // The caller looks at it; that it fails before is not unhandled.
    coming.catch(() => undefined);
    // Not before the request is on its way, where it has a connection at once.
    await setImmediate();
  }
  try {
    options.onItems(items);
  } catch (error) {
    // Nothing may go on that nobody waits for.
    await coming?.catch(() => undefined);
    throw error;
  }
  return { resourceVersion, token, coming };
}

async function pageWithRetries(options: ListAllOptions, token: string | undefined): Promise<ListPage> {
  const tries = token === undefined ? options.firstPageTries : LATER_PAGE_TRIES;
  let attempt = 0;
  for (;;) {
    try {
      return await fetchPage(options, token);
    } catch (error) {
      if (isOversized(error) && options.pageSize.shrink()) continue;
      if (!(error instanceof KubeError) || policyFor(error) !== 'retry' || error.code === 'Gone') throw error;
      // Whoever waits for a first page has waited long enough after one deadline.
      const ranOut = error.code === 'Timeout' && error.status === undefined && token === undefined;
      if (ranOut || attempt + 1 >= tries) throw error;
      const { random, signal, clock } = options;
      const { retryAfterMs } = error;
      await clock.sleep(
        retryDelay({ attempt, retryAfterMs, baseMs: RETRY_BASE_MS, capMs: RETRY_CAP_MS, random }),
        signal,
      );
      attempt += 1;
    }
  }
}

async function fetchPage(options: ListAllOptions, token: string | undefined): Promise<ListPage> {
  const { client, resource, namespace, labelSelector, pageSize, signal } = options;
  return client.listPage(resource, {
    namespace,
    labelSelector,
    limit: pageSize.limit,
    continue: token,
    signal,
    // A single item has to be taken as it comes; the client's own cap still holds.
    maxBytes: pageSize.limit === 1 ? undefined : options.pageCapBytes,
  });
}

/** Our own cap, as opposed to a 413 of the server. */
function isOversized(error: unknown): boolean {
  return error instanceof KubeError && error.code === 'TooLarge' && error.status !== undefined && error.status < 300;
}
