import type { KubeClient, ListOptions, ListPage, WatchOptions } from '../../../src/kube/client.ts';
import type { Clock } from '../../../src/kube/clock.ts';
import { KubeError, type KubeErrorCode, type KubeErrorFacts } from '../../../src/kube/errors.ts';
import { objectAt, stringAt } from '../../../src/kube/json.ts';
import type { JsonObject, Resource } from '../../../src/kube/resource.ts';
import type { WatchEvent } from '../../../src/kube/watch-stream.ts';

/** One end of a watch that the test holds in its hand. */
interface OpenWatch {
  /** Undefined ends it in good order, an error breaks it. */
  readonly queue: (WatchEvent | KubeError | undefined)[];
  wake: () => void;
}

export function fault(code: KubeErrorCode, more: Partial<KubeErrorFacts> = {}): KubeError {
  return new KubeError({ verb: 'list', resource: 'backups.velero.io', message: `${code} it is`, ...more, code });
}

/**
 * One collection behind the two calls that a reflector makes, in a test's own time. It keeps no history: a watch gets what
 * happens after it was opened, so whatever happens between two watches is lost unless the test has a list tell of it.
 */
export class ScriptedApi implements Pick<KubeClient, 'listPage' | 'watch'> {
  readonly objects = new Map<string, JsonObject>();
  /** Errors that the next lists get, in order. */
  readonly listErrors: KubeError[] = [];
  /** Errors that the next watches get instead of being opened. */
  readonly watchErrors: KubeError[] = [];
  /** Errors that the next watches that begin with what is there get instead of being opened. */
  readonly streamErrors: KubeError[] = [];
  /** Whether watches may begin with what is there; older servers refuse. */
  streams = false;
  /** As many objects are told, then the stream breaks with the error. */
  streamBreak: { readonly after: number; readonly error: KubeError | undefined } | undefined;
  /** While set, the next streams tell nothing and do not come to an end. */
  streamHangs = false;
  /** While set, everything fails with it. */
  outage: KubeError | undefined;
  /** Watches end after this long by themselves, whatever was asked for. */
  cutAfterMs: number | undefined;
  lists = 0;
  /** Watches that were to begin with what is there. */
  streamed = 0;
  readonly watched: WatchOptions[] = [];
  pageItems = 1_000;
  resourceVersion = 100;
  readonly #clock: Clock;
  readonly #open = new Set<OpenWatch>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get requests(): number {
    return this.lists + this.streamed + this.watched.length;
  }

  get openWatches(): number {
    return this.#open.size;
  }

  /** Makes or changes an object; with `told: false` no watch hears of it. */
  put(name: string, value: unknown, told = true): void {
    const type = this.objects.has(name) ? 'MODIFIED' : 'ADDED';
    const object = this.#stamped(name, value);
    this.objects.set(name, object);
    if (told) this.send({ type, object, resourceVersion: String(this.resourceVersion) });
  }

  remove(name: string, told = true): void {
    // As the real one does, it tells what the object was.
    const object = this.#stamped(name, this.objects.get(name)?.['value']);
    this.objects.delete(name);
    if (told) this.send({ type: 'DELETED', object, resourceVersion: String(this.resourceVersion) });
  }

  bookmark(): void {
    this.send({ type: 'BOOKMARK', resourceVersion: String(this.resourceVersion) });
  }

  /** Puts something into every open watch. */
  send(what: WatchEvent | KubeError | undefined): void {
    for (const watch of this.#open) {
      watch.queue.push(what);
      watch.wake();
    }
  }

  listPage(_resource: Resource, options: ListOptions = {}): Promise<ListPage> {
    this.lists += 1;
    const error = this.outage ?? this.listErrors.shift();
    if (error !== undefined) return Promise.reject(error);
    if (options.signal?.aborted === true) return Promise.reject(fault('Aborted'));
    const start = Number(options.continue ?? '0');
    const end = start + Math.min(this.pageItems, options.limit ?? this.pageItems);
    const all = [...this.objects.values()];
    return Promise.resolve({
      items: all.slice(start, end),
      resourceVersion: String(this.resourceVersion),
      bytes: 1_000,
      ...(end < all.length ? { continue: String(end) } : {}),
    });
  }

  async *watch(_resource: Resource, options: WatchOptions): AsyncGenerator<WatchEvent, void, void> {
    const isStream = options.resourceVersion === undefined;
    if (isStream) this.streamed += 1;
    else this.watched.push(options);
    const error = this.outage ?? (isStream ? this.streamErrors : this.watchErrors).shift();
    if (error !== undefined) throw error;
    if (isStream && !this.streams) throw fault('Invalid', { verb: 'watch', status: 422 });
    const watch: OpenWatch = { queue: isStream ? this.#initialEvents() : [], wake: () => undefined };
    const over = new AbortController();
    this.#open.add(watch);
    const onAbort = (): void => {
      watch.queue.push(fault('Aborted'));
      watch.wake();
    };
    options.signal?.addEventListener('abort', onAbort, { once: true });
    void this.#clock.sleep(this.cutAfterMs ?? options.timeoutSeconds * 1000, over.signal).then(() => {
      watch.queue.push(undefined);
      watch.wake();
    });
    options.onOpen?.();
    try {
      for (;;) {
        while (watch.queue.length > 0) {
          const next = watch.queue.shift();
          if (next === undefined) return;
          if (next instanceof KubeError) throw next;
          yield next;
        }
        await new Promise<void>((resolve) => {
          watch.wake = resolve;
        });
      }
    } finally {
      over.abort();
      options.signal?.removeEventListener('abort', onAbort);
      this.#open.delete(watch);
    }
  }

  #initialEvents(): OpenWatch['queue'] {
    if (this.streamHangs) return [];
    const broken = this.streamBreak;
    this.streamBreak = undefined;
    const all = [...this.objects.values()].map((object): WatchEvent => ({
      type: 'ADDED',
      object,
      resourceVersion: stringAt(objectAt(object, 'metadata'), 'resourceVersion') ?? '',
    }));
    if (broken !== undefined) return [...all.slice(0, broken.after), broken.error];
    return [...all, { type: 'BOOKMARK', resourceVersion: String(this.resourceVersion), initialEventsEnd: true }];
  }

  #stamped(name: string, value: unknown): JsonObject {
    this.resourceVersion += 1;
    return { metadata: { name, resourceVersion: String(this.resourceVersion) }, value };
  }
}
