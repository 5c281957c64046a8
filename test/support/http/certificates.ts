import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import type { TlsTexts } from '../../../src/http/server.ts';

/** A certificate of its own for `name`, by the system's openssl; `undefined` where there is none. */
export function makeCertificate(
  directory: string, name: string, keyOptions = ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'],
): TlsTexts | undefined {
  const [keyFile, certFile] = [join(directory, `${name}.key`), join(directory, `${name}.crt`)];
  const made = spawnSync('openssl', [
    'req', '-x509', '-newkey', ...keyOptions, '-nodes', '-days', '2',
    '-subj', `/CN=${name}`, '-keyout', keyFile, '-out', certFile,
  ]);
  if (made.status !== 0) return undefined;
  return { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
}

/** The common name of the certificate that a new connection is met with. */
export async function greetedBy(port: number): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return String(CN);
}
