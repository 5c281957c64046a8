import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { readReason } from '../../base/errors.ts';
import type { TlsTexts } from '../../http/server.ts';
import { errorCode } from '../../store/disk/files.ts';
import { OptionError } from '../../config/options.ts';

/**
 * Reads a certificate and its key.
 * @throws OptionError if a file has other content, or the key does not belong to the certificate
 */
export function readTls(certFile: string, keyFile: string): TlsTexts {
  try {
    const [cert, key] = [readFileSync(certFile, 'utf8'), readFileSync(keyFile, 'utf8')];
    if (key.includes('ENCRYPTED'))
      throw new Error('the key is encrypted; decrypt it with "openssl pkey"');
    const fits = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
    if (!fits) throw new Error('the key does not belong to the certificate');
    // TLS refuses more, such as keys that are too small.
    createSecureContext({ cert, key });
    return { cert, key };
  } catch (error) {
    if (errorCode(error) === 'ERR_ACCESS_DENIED') throw error;
    throw new OptionError(`Cannot use --tls-cert and --tls-key: ${readReason(error)}`);
  }
}
