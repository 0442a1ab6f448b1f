import type { RequestFacts, Verb } from './request-facts.ts';

/** What can be done to a request. Where nothing else is said, a watch that is open is struck as well as a new request. */
export type Fault =
  /** The connection is reset: before the request goes to the server, or in the middle of the answer. */
  | { readonly kind: 'reset'; readonly when: 'before' | 'midAnswer' }
  /** The server has done what was asked, and then the connection is reset. */
  | { readonly kind: 'lostAnswer' }
  /** The request is accepted and never answered; an open watch goes silent. */
  | { readonly kind: 'halfOpen' }
  /** The answer begins so much later. */
  | { readonly kind: 'slowHeaders'; readonly ms: number }
  /** The answer comes in pieces of so many bytes. */
  | { readonly kind: 'slowBody'; readonly bytes: number; readonly everyMs: number }
  /** The server is not asked; this is the answer. An open watch is not struck. */
  | {
      readonly kind: 'status';
      readonly status: number;
      /** Seconds. */
      readonly retryAfter?: number;
      /** The body: a Status object, a load balancer's page, or nothing. */
      readonly body: 'status' | 'page' | 'none';
    }
  /** 200 with something that the Kubernetes API never sends. An open watch is not struck. */
  | { readonly kind: 'nonsense'; readonly body: string }
  /** A list without an item, as if there were none: a lie that cannot be told from the truth. Only lists are struck, streamed or not. */
  | { readonly kind: 'emptyList' }
  /** The request waits in front of the server until the fault is removed. An open watch is not struck. */
  | { readonly kind: 'hold' }
  /** Only watches: the next event breaks off in the middle, and the stream ends in good order. */
  | { readonly kind: 'truncatedEvent' }
  /** Only watches: a line that is no event. */
  | { readonly kind: 'garbageLine'; readonly line: string }
  /** Only watches: an ERROR event, then the end. */
  | { readonly kind: 'errorEvent'; readonly code: number; readonly reason: string }
  /** Only watches: the stream ends in good order, long before its time. */
  | { readonly kind: 'closesEarly' }
  /** Only watches: each event comes again, at once or after the next one. */
  | { readonly kind: 'duplicateEvents'; readonly late: boolean }
  /** Only watches: each event changes places with the next one. */
  | { readonly kind: 'reorderedEvents' };

/** Which requests a fault strikes; what is left out matches everything. */
export interface Target {
  /** A list that is streamed is a watch, and while it is being opened a list as well. */
  readonly verbs?: readonly Verb[];
  /** Plural names. */
  readonly resources?: readonly string[];
  readonly namespace?: string;
  readonly name?: string;
  readonly subresource?: string;
  readonly laterPage?: boolean;
}

export interface FaultRule {
  readonly fault: Fault;
  readonly on?: Target;
  /** Of each request that matches; default 1. */
  readonly probability?: number;
  /** How often at most; default without bound. */
  readonly times?: number;
}

/** Kinds that make no sense for anything but a watch. */
const streamKinds: ReadonlySet<Fault['kind']> = new Set<Fault['kind']>([
  'truncatedEvent',
  'garbageLine',
  'errorEvent',
  'closesEarly',
  'duplicateEvents',
  'reorderedEvents',
]);

/** Kinds that a request can meet only at its beginning. */
const openingKinds: ReadonlySet<Fault['kind']> = new Set<Fault['kind']>(['status', 'nonsense', 'emptyList', 'hold']);

export function matches({ fault, on = {} }: FaultRule, facts: RequestFacts): boolean {
  if (streamKinds.has(fault.kind) && facts.verb !== 'watch') return false;
  if (fault.kind === 'emptyList' && !isList(facts)) return false;
  return (
    (on.verbs === undefined || on.verbs.includes(facts.verb) || (on.verbs.includes('list') && isList(facts))) &&
    (on.resources?.includes(facts.resource) ?? true) &&
    (on.namespace === undefined || on.namespace === facts.namespace) &&
    (on.name === undefined || on.name === facts.name) &&
    (on.subresource === undefined || on.subresource === facts.subresource) &&
    (on.laterPage === undefined || on.laterPage === facts.laterPage)
  );
}

/** As `matches`, for a watch that is already open. */
export function strikesOpenWatch(rule: FaultRule, facts: RequestFacts): boolean {
  return !openingKinds.has(rule.fault.kind) && matches(rule, { ...facts, streamedList: false });
}

function isList({ verb, streamedList }: RequestFacts): boolean {
  return verb === 'list' || streamedList;
}
