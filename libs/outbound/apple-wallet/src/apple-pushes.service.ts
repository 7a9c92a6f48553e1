import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import type { AppleCredentials } from '#kernel/apple-credentials.js';
import { messageOf } from '#kernel/errors.js';
import {
  PassSender,
  type PassOutcome,
  type PassUpdate,
  type WantedUpdate,
} from '#passes/pass-sender.js';
import { APNS_TIMES, ApnsClient, type ApnsAnswer } from './apns.client.js';
import { AppleCertificate } from './apple-certificate.service.js';
import { AppleDevices, type AppleDevice } from './apple-devices.service.js';

/** How long nothing is pushed after Apple has refused the certificate or the token. */
const STOPPED_MS = 5 * 60_000;
/** While one push finds out whether Apple takes them again. */
const PROBED_MS = 5_000;
const HOUR_MS = 60 * 60_000;

/** Reasons of a 400 that are about the device, not about us. */
const DEVICE_FAULTS = new Set(['BadDeviceToken', 'DeviceTokenNotForTopic']);
/** Reasons of a 400 that every push would get. */
const OUR_FAULTS = new Set(['TopicDisallowed', 'BadTopic', 'BadCertificateEnvironment']);

/** Tells a phone that some of its passes have changed; which ones, it asks for itself. */
@Injectable()
export class ApplePushes extends PassSender implements OnModuleDestroy {
  readonly channel = 'apple';
  readonly atOnce = 50;

  private readonly log = new Logger('apple pushes');
  private readonly refused: Gauge;
  private open: { of: AppleCredentials; client: ApnsClient } | undefined;
  /** Apple refuses every push. */
  private stopped: { because: string; until: number } | undefined;

  constructor(
    private readonly certificate: AppleCertificate,
    private readonly devices: AppleDevices,
    registry: Registry,
  ) {
    super();
    this.refused = new Gauge({
      name: 'inkpad_apple_pushes_refused',
      help: '1 while Apple refuses the certificate or token of pushes',
      registers: [registry],
    });
  }

  get enabled(): boolean {
    return this.certificate.credentials !== null;
  }

  onModuleDestroy(): void {
    this.open?.client.close();
  }

  /** Also while the certificate has expired: the updates wait for the next one. */
  targetsOf(customerCardIds: number[]): Promise<WantedUpdate[]> {
    return this.devices.targetsOf(customerCardIds);
  }

  async send({ target }: PassUpdate, signal: AbortSignal): Promise<PassOutcome> {
    const { credentials } = this.certificate;
    if (credentials === null) {
      return { kind: 'failed', error: 'the certificate has expired', retryInMs: HOUR_MS };
    }
    const waiting = this.waitsFor(Date.now());
    if (waiting) return waiting;
    const device = await this.devices.find(Number(target));
    // Passes of another type cannot be pushed to with this certificate.
    if (!device || device.passTypeId !== credentials.passTypeId) return { kind: 'done' };
    const outcome = await this.push(credentials, device, signal);
    // Cleared when the phone fetches the pass.
    if (outcome.kind !== 'done') await this.devices.noteFailure(device.id, outcome.error);
    return outcome;
  }

  private async push(
    credentials: AppleCredentials,
    device: AppleDevice,
    signal: AbortSignal,
  ): Promise<PassOutcome> {
    let answer: ApnsAnswer;
    try {
      answer = await this.clientOf(credentials).push(device.pushToken, signal);
    } catch (error) {
      return { kind: 'failed', error: `Apple: ${messageOf(error)}` };
    }
    return this.outcomeOf(answer, device);
  }

  private async outcomeOf(answer: ApnsAnswer, device: AppleDevice): Promise<PassOutcome> {
    const { status, reason, since, retryInMs } = answer;
    const error = `Apple: ${status} ${reason}`.trim();
    if (status === 403 || (status === 400 && OUR_FAULTS.has(reason))) return this.stop(error);
    if (this.stopped) {
      this.stopped = undefined;
      this.refused.set(0);
      this.log.log('Apple takes pushes again');
    }
    if (status === 200) return { kind: 'done' };
    if (status === 410 || (status === 400 && DEVICE_FAULTS.has(reason))) {
      const gone = await this.devices.forget(device, since);
      if (gone) this.log.log(`device ${device.id} is gone (${reason})`);
      return { kind: 'done' };
    }
    if (status === 429 || status >= 500) {
      return { kind: 'failed', error, ...(retryInMs !== null && { retryInMs }) };
    }
    return { kind: 'refused', error };
  }

  /** Every further push would be refused too, and Apple would take them for an attack. */
  private stop(error: string): PassOutcome {
    if (!this.stopped) {
      this.log.error(
        `${error}: Apple refuses the certificate or token of pushes. Passes on phones are not updated until it takes them again; one push every ${STOPPED_MS / 60_000} minutes tries. See docs/operating.md, Apple Wallet`,
      );
    }
    this.refused.set(1);
    this.stopped = { because: error, until: Date.now() + STOPPED_MS };
    return { kind: 'failed', error, retryInMs: STOPPED_MS };
  }

  /** Undefined: this push may go, if need be as the one that tries. */
  private waitsFor(now: number): PassOutcome | undefined {
    if (!this.stopped) return undefined;
    const { because, until } = this.stopped;
    if (now < until) return { kind: 'failed', error: because, retryInMs: until - now };
    this.stopped.until = now + PROBED_MS + APNS_TIMES.connectWithinMs + APNS_TIMES.answerWithinMs;
    return undefined;
  }

  private clientOf(credentials: AppleCredentials): ApnsClient {
    if (this.open?.of !== credentials) {
      this.open?.client.close();
      this.open = { of: credentials, client: new ApnsClient(credentials) };
    }
    return this.open.client;
  }
}
