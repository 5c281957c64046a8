import { X509Certificate } from 'node:crypto';
import { TLSSocket } from 'node:tls';
import { inManual } from '../../base/manual.ts';
import type { Clock } from '../../base/system.ts';

const dayMs = 86_400_000;
/** How long before its end a certificate is told of, once a day. */
const aheadMs = 30 * dayMs;

/** Tells of certificates that end soon: from then on, no connection that needs one is made. */
export class CertificateEnds {
  readonly #clock: Clock;
  readonly #onNotice: (notice: string) => void;
  /** When each was told of last. */
  readonly #toldAt = new Map<string, number>();

  constructor(clock: Clock, onNotice: (notice: string) => void) {
    this.#clock = clock;
    this.#onNotice = onNotice;
  }

  /** Looks at those of a new connection to a member, and at `own`, with which it was made. */
  look(socket: unknown, member: string, own: string | undefined): void {
    if (!(socket instanceof TLSSocket)) return;
    if (own !== undefined) this.#judge('of --cluster-cert', new X509Certificate(own).validTo);
    const peer = socket.getPeerCertificate(true);
    this.#judge(`of ${member}`, peer.valid_to);
    // The one that signed itself names itself.
    for (let one = peer; one.issuerCertificate && one.issuerCertificate !== one;) {
      one = one.issuerCertificate;
      this.#judge(`of an authority of ${member}`, one.valid_to);
    }
  }

  #judge(which: string, end: string): void {
    const now = this.#clock.now();
    const endsAt = Date.parse(end);
    const isSoon = endsAt - now < aheadMs;
    if (!isSoon || now - (this.#toldAt.get(which) ?? -Infinity) < dayMs) return;
    this.#toldAt.set(which, now);
    const time = new Date(endsAt).toISOString();
    this.#onNotice(
      `the certificate ${which} ends at ${time}: see ${inManual('cluster.md#setting-up-etcd')}`,
    );
  }
}
