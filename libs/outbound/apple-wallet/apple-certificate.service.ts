import {
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { getNow } from '#platform/kernel/clock.js';
import type { AppleCredentials } from '#configuration/apple-credentials.js';
import { Config } from '#configuration/config.js';

const DAY_MS = 24 * 60 * 60 * 1000;
const WARNING_PERIOD_MS = 30 * DAY_MS;

/** Provides the certificate that signs passes, as long as one is configured and has not expired. */
@Injectable()
export class AppleCertificate implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly log = new Logger('apple');
  private readonly configured: AppleCredentials | null;
  private timer: NodeJS.Timeout | undefined;

  constructor({ apple }: Config, registry: Registry) {
    this.configured = apple;
    if (apple === null) return;
    const expiryGauge = new Gauge({
      name: 'inkpad_apple_certificate_expires_timestamp_seconds',
      help: 'When the certificate that signs passes for Apple Wallet expires',
      registers: [registry],
    });
    expiryGauge.set(apple.expiresAt.getTime() / 1000);
  }

  onApplicationBootstrap(): void {
    if (this.configured === null) return;
    this.warnBeforeExpiry(getNow());
    this.timer = setInterval(() => this.warnBeforeExpiry(getNow()), DAY_MS).unref();
  }

  onModuleDestroy(): void {
    clearInterval(this.timer);
  }

  /** Adds the certificate to the readiness report. The process is ready without it. */
  addToReadiness(readiness: {
    addOptionalPart: (name: string, isThere: () => boolean) => void;
  }): void {
    if (this.configured === null) return;
    readiness.addOptionalPart('apple_certificate', () => this.credentials !== null);
  }

  /** Returns the credentials; null when there are none, or when they have expired. */
  get credentials(): AppleCredentials | null {
    return this.configured !== null && this.configured.expiresAt > getNow()
      ? this.configured
      : null;
  }

  private warnBeforeExpiry(now: Date): void {
    if (this.configured === null) return;
    const { expiresAt, passTypeId } = this.configured;
    const remainingMs = expiresAt.getTime() - now.getTime();
    const expiry = expiresAt.toISOString();
    if (remainingMs <= 0) {
      this.log.error(
        `the certificate of ${passTypeId} has expired (${expiry}): passes for Apple Wallet cannot be issued or updated. Renew APPLE_PASS_CERT and APPLE_WWDR_CERT`,
      );
    } else if (remainingMs < WARNING_PERIOD_MS) {
      this.log.warn(
        `the certificate of ${passTypeId} expires in ${Math.floor(remainingMs / DAY_MS)} days (${expiry}): renew APPLE_PASS_CERT, otherwise passes in Apple Wallet will not be updated any more`,
      );
    }
  }
}
