import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import type { AppleCredentials } from '#configuration/apple-credentials.js';
import { Config } from '#configuration/config.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import type { Queryable } from '#platform/database/connection.js';
import type { JobOutcome } from '#platform/database/job-queue.js';
import { OutboundTunnels } from '#outbound/sending/outbound-tunnels.client.js';
import { PassSender, type PassUpdate, type UpdateRequest } from '#outbound/passes/pass-sender.js';
import { APNS_TIMEOUTS, ApnsClient, type ApnsResponse } from './apns.client.js';
import { AppleCertificate } from './apple-certificate.service.js';
import { AppleDevices, type AppleDevice } from './apple-devices.service.js';

/** How long pushes pause after Apple has refused the certificate or the token. */
const PAUSE_MS = 5 * 60_000;
/** How long the others wait while one push probes whether Apple accepts pushes again. */
const PROBE_MS = 5_000;
const EXPIRED = {
  kind: 'failed',
  error: 'the certificate has expired',
  retryInMs: 60 * 60_000,
} as const satisfies JobOutcome;

/** Reasons of a 400 that concern the device only. */
const DEVICE_ERRORS = new Set(['BadDeviceToken', 'DeviceTokenNotForTopic']);
/** Reasons of a 400 that every push would get. */
const CONFIGURATION_ERRORS = new Set(['TopicDisallowed', 'BadTopic', 'BadCertificateEnvironment']);

/** Pushes to a phone that some of its passes have changed. The phone then requests which ones. */
@Injectable()
export class ApplePushes extends PassSender implements OnModuleDestroy {
  readonly channel = 'apple';
  readonly concurrency = 50;

  private readonly log = new Logger('apple pushes');
  private readonly refusedGauge: Gauge;
  private readonly tunnels: OutboundTunnels;
  private connection: { credentials: AppleCredentials; client: ApnsClient } | undefined;
  /** Set while Apple refuses every push. `endsAt` is of `performance.now()`. */
  private pause: { reason: string; endsAt: number } | undefined;

  constructor(
    private readonly certificate: AppleCertificate,
    private readonly devices: AppleDevices,
    registry: Registry,
    config: Config,
  ) {
    super();
    this.tunnels = new OutboundTunnels(config.outboundProxy);
    this.refusedGauge = new Gauge({
      name: 'inkpad_apple_pushes_refused',
      help: '1 while Apple refuses the certificate or token of pushes',
      registers: [registry],
    });
  }

  get enabled(): boolean {
    return this.certificate.credentials !== null;
  }

  onModuleDestroy(): void {
    this.connection?.client.close();
  }

  /** Finds targets also while the certificate has expired: their updates wait for its renewal. */
  findTargets(customerCardIds: number[], by: Queryable): Promise<UpdateRequest[]> {
    return this.devices.findTargets(customerCardIds, by);
  }

  async send({ target }: PassUpdate, signal: AbortSignal): Promise<JobOutcome> {
    const { credentials } = this.certificate;
    const device = await this.devices.find(Number(target));
    if (!device) return { kind: 'done' };
    // This certificate cannot push to passes of another type.
    if (credentials && device.passTypeId !== credentials.passTypeId) return { kind: 'done' };
    const outcome =
      credentials === null
        ? EXPIRED
        : (this.findPauseOutcome(performance.now()) ??
          (await this.push(credentials, device, signal)));
    if (outcome.kind === 'unsent') return outcome;
    if (outcome.kind !== 'done') await this.devices.recordError(device.id, outcome.error);
    else if (device.hasFailed) await this.devices.recordError(device.id, null);
    return outcome;
  }

  private async push(
    credentials: AppleCredentials,
    device: AppleDevice,
    signal: AbortSignal,
  ): Promise<JobOutcome> {
    const { pause } = this;
    let response: ApnsResponse;
    try {
      response = await this.getClient(credentials).push(device.pushToken, signal);
    } catch (error) {
      if (signal.aborted) return { kind: 'unsent' };
      return { kind: 'failed', error: `Apple: ${getErrorMessage(error)}` };
    }
    if (response.status === 200) {
      this.endPause(pause);
      return { kind: 'done' };
    }
    return this.handleFailure(response, device);
  }

  private async handleFailure(response: ApnsResponse, device: AppleDevice): Promise<JobOutcome> {
    const { status, reason, goneAt, retryInMs } = response;
    const error = `Apple: ${status} ${reason}`.trim();
    if (status === 403 || (status === 400 && CONFIGURATION_ERRORS.has(reason)))
      return this.pausePushes(error);
    if (status === 410 || (status === 400 && DEVICE_ERRORS.has(reason))) {
      const isDeleted = await this.devices.forget(device, goneAt);
      if (isDeleted) this.log.log(`device ${device.id} is gone (${reason})`);
      return { kind: 'done' };
    }
    if (status === 429 || status >= 500) {
      // The next probe waits as long as Apple asks for.
      if (this.pause && retryInMs !== null)
        this.pause.endsAt = Math.max(this.pause.endsAt, performance.now() + retryInMs);
      return { kind: 'failed', error, ...(retryInMs !== null && { retryInMs }) };
    }
    return { kind: 'refused', error };
  }

  /** Pauses all pushes: Apple would refuse every further one, and treat them as an attack. */
  private pausePushes(error: string): JobOutcome {
    if (!this.pause) {
      this.log.error(
        `${error}: Apple refuses the certificate or token of pushes. Passes on phones are not updated until it accepts them again; one push is tried every ${PAUSE_MS / 60_000} minutes. See docs/operating/connect.md, Apple Wallet`,
      );
    }
    this.refusedGauge.set(1);
    this.pause = { reason: error, endsAt: performance.now() + PAUSE_MS };
    return { kind: 'failed', error, retryInMs: PAUSE_MS };
  }

  /**
   * Ends a pause. Only a success does: an overloaded Apple has not looked at the certificate yet, and a phone that is gone says
   * nothing about the others.
   * @param pause the one during which the push began: one that was already under way says nothing about a pause
   */
  private endPause(pause: ApplePushes['pause']): void {
    if (pause === undefined || pause !== this.pause) return;
    this.pause = undefined;
    this.refusedGauge.set(0);
    this.log.log('Apple accepts pushes again');
  }

  /** Finds the outcome of a push during a pause. Undefined: the push may be sent, as the probe if a pause has ended. */
  private findPauseOutcome(now: number): JobOutcome | undefined {
    if (!this.pause) return undefined;
    const { reason, endsAt } = this.pause;
    if (now < endsAt) return { kind: 'failed', error: reason, retryInMs: Math.ceil(endsAt - now) };
    this.pause.endsAt =
      now + PROBE_MS + APNS_TIMEOUTS.connectTimeoutMs + APNS_TIMEOUTS.responseTimeoutMs;
    return undefined;
  }

  private getClient(credentials: AppleCredentials): ApnsClient {
    if (this.connection?.credentials !== credentials) {
      this.connection?.client.close();
      const client = new ApnsClient(credentials, this.tunnels);
      this.connection = { credentials, client };
    }
    return this.connection.client;
  }
}
