import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Config } from '../config.ts';
import type { TlsTexts } from '../http/server.ts';
import { UsageError } from '../options.ts';
import { errorCode } from '../store/files.ts';
import { failure, ok, warning, type Finding } from './findings.ts';

type TlsFiles = NonNullable<Config['tls']>;

/** So long before its end, a certificate should have been renewed. */
const renewalMs = 14 * 24 * 60 * 60 * 1000;

/** @throws UsageError where a file is not what it should be, or the two do not fit each other */
export async function readTls({ certFile, keyFile }: TlsFiles): Promise<TlsTexts> {
  try {
    const tls = { cert: await readFile(certFile, 'utf8'), key: await readFile(keyFile, 'utf8') };
    if (tls.key.includes('ENCRYPTED')) throw new Error('the key is encrypted: "openssl pkey" writes it in the clear');
    if (new X509Certificate(tls.cert).checkPrivateKey(createPrivateKey(tls.key))) return tls;
    throw new Error('the key is not the one of the certificate');
  } catch (error) {
    if (errorCode(error) === 'ERR_ACCESS_DENIED') throw error;
    const problem = error instanceof Error ? error.message : String(error);
    throw new UsageError(`Cannot use --tls-cert and --tls-key: ${problem}`);
  }
}

/** What `cairn check` says of the certificate. `now`: milliseconds since the Unix epoch. */
export async function checkTls(files: TlsFiles, now: number): Promise<Finding> {
  try {
    const { validTo } = new X509Certificate((await readTls(files)).cert);
    const left = Date.parse(validTo) - now;
    const date = new Date(validTo).toISOString().slice(0, 10);
    if (left < 0) return failure(`The certificate ended on ${date}`);
    return (left < renewalMs ? warning : ok)(`The certificate ends on ${date}`);
  } catch (error) {
    return failure(error instanceof Error ? error.message : String(error));
  }
}
