import { isIP } from 'node:net';

/** Where to listen. `host` undefined means all interfaces, `port` 0 a free port. */
export interface Address {
  readonly host: string | undefined;
  readonly port: number;
}

const hostName = /^(?=.{1,253}$)[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*$/;

/** `host:port`, `:port` or `[ipv6]:port`; undefined for anything else. */
export function parseAddress(text: string): Address | undefined {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  if (match === null) return undefined;
  const [, bracketed, plain = '', digits = ''] = match;
  const port = Number(digits);
  if (port > 65_535) return undefined;
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? { host: bracketed, port } : undefined;
  if (plain === '') return { host: undefined, port };
  // Looks like an IPv4 address, so it has to be one: 300.1.1.1 is nobody's host name.
  const valid = /^[\d.]+$/.test(plain) ? isIP(plain) === 4 : hostName.test(plain);
  return valid ? { host: plain, port } : undefined;
}

/** As it stands in a URL. */
export function formatAddress({ host, port }: Address): string {
  if (host === undefined) return `:${port}`;
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}
