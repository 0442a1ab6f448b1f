import type { RequestOptions } from 'node:https';

/** What a TLS handshake needs, in the words of node:tls. */
export interface TlsMaterial {
  readonly ca?: RequestOptions['ca'];
  readonly cert?: RequestOptions['cert'];
  readonly key?: RequestOptions['key'];
  readonly servername?: string | undefined;
  readonly rejectUnauthorized?: boolean | undefined;
}

/** Proof of who we are. `tls` stays the same object for as long as its content does. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsMaterial;
}
