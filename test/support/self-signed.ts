import { generateKeyPairSync, sign } from 'node:crypto';

/** One element of DER: tag, length, content. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const length =
    content.length < 0x80 ? [content.length] : [0x82, Math.floor(content.length / 0x100), content.length % 0x100];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts);
const utcTime = (time: number): Buffer =>
  der(0x17, Buffer.from(new Date(time).toISOString().replace(/^..|[-:T]|\.\d+/g, '')));

/** 1.3.101.112 and 2.5.4.3 */
const ed25519 = sequence(der(0x06, Buffer.from([0x2b, 0x65, 0x70])));
const commonName = der(0x06, Buffer.from([0x55, 0x04, 0x03]));

/** A certificate for a host name that vouches for itself, and its key, both PEM; valid for an hour. Each is another one. */
export function selfSigned(host: string): { readonly cert: string; readonly key: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const name = sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from(host)))));
  const now = Date.now();
  const toBeSigned = sequence(
    der(0x02, Buffer.from([1])),
    ed25519,
    name,
    sequence(utcTime(now - 60_000), utcTime(now + 3_600_000)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
  );
  // A BIT STRING begins with the number of bits that are not used.
  const certificate = sequence(toBeSigned, ed25519, der(0x03, Buffer.from([0]), sign(null, toBeSigned, privateKey)));
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    cert: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n'),
    key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
  };
}
