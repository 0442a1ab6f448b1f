/** The verbs as RBAC spells them. */
export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'other';

/** What a request to the Kubernetes API is about, read off its method and path. */
export interface RequestFacts {
  readonly verb: Verb;
  /** Plural name, such as `nonadminbackups`; empty for a path that is about no kind. */
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  /** A page of a list after the first. */
  readonly laterPage: boolean;
  /** A watch that begins with what is there, in place of a list. */
  readonly streamedList: boolean;
}

const writes: Readonly<Record<string, Verb>> = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };

/** @param url path and query as they stand in the request line */
export function requestFacts(method: string, url: string): RequestFacts {
  const { pathname, searchParams } = new URL(url, 'https://api.invalid');
  const segments = pathname.split('/').slice(1).map(decodeURIComponent);
  // /api/v1/... or /apis/GROUP/VERSION/...
  const rest = segments[0] === 'api' ? segments.slice(2) : segments[0] === 'apis' ? segments.slice(3) : [];
  // `/namespaces/X` is the namespace X itself, `/namespaces/X/more` something in it.
  const [namespace, [resource = '', name, subresource]] =
    rest[0] === 'namespaces' && rest.length > 2 ? [rest[1], rest.slice(2)] : [undefined, rest];
  return {
    verb: verbOf(method, name, searchParams),
    resource,
    namespace,
    name,
    subresource,
    laterPage: searchParams.has('continue'),
    streamedList: searchParams.get('sendInitialEvents') === 'true',
  };
}

function verbOf(method: string, name: string | undefined, query: URLSearchParams): Verb {
  if (method !== 'GET') return writes[method] ?? 'other';
  if (query.get('watch') === 'true') return 'watch';
  return name === undefined ? 'list' : 'get';
}
