import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { setFlagsFromString } from 'node:v8';
import { Registry } from 'prom-client';
import { readConfig } from '#configuration/config.js';
import { Log } from '#platform/kernel/log.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { findLogFormat } from '#platform/kernel/log-lines.js';
import { refuseToStart, reportUnhandled } from '#platform/kernel/start-error.js';
import { releaseStartMemory } from '#platform/kernel/start-memory.js';
import { listenForStop, type StopRequest } from '#platform/kernel/stop.js';
import { startTracing } from '#platform/kernel/tracing.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { waitForDatabase } from '#platform/operations/database-wait.js';
import { listenForMetrics } from '#platform/operations/metrics-listener.js';
import { Readiness } from '#platform/operations/readiness.js';
import { getPort } from '#platform/operations/operator-server.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { StartCheck } from '#platform/event-store/log/start-check.js';
import { LogTimes } from '#platform/event-store/log/log-times.service.js';
import { AddressUpkeep } from '#identity/address-upkeep.service.js';
import { Reprojection } from '#platform/event-store/read-models/reprojection.service.js';
import { HistorySubscription } from '#loyalty/history/history.subscription.js';
import { StatisticsSubscription } from '#loyalty/statistics/statistics.subscription.js';
import { PhoneNormalization } from '#loyalty/customers/phone-normalization.service.js';
import { ImportDispatch } from '#loyalty/imports/import-dispatch.service.js';
import { BounceMailbox } from '#outbound/messages/bounce-mailbox.service.js';
import { CardLinkFollower } from '#outbound/messages/card-links.subscription.js';
import { MessageDispatch } from '#outbound/messages/message-dispatch.service.js';
import { RetirementAnnouncements } from '#outbound/messages/retirement-announcements.service.js';
import { PassChanges } from '#outbound/passes/pass-changes.subscription.js';
import { PassDispatch } from '#outbound/passes/pass-dispatch.service.js';
import { DecoyCardCleanup } from '#outbound/passes/decoy-card-cleanup.service.js';
import { CheckpointSigning } from '#outbound/transparency/checkpoint-signing.service.js';
import { TransparencyLog } from '#outbound/transparency/transparency-log.subscription.js';
import { AppleCertificate } from '#outbound/apple-wallet/apple-certificate.service.js';
import { CampaignDispatch } from '#outbound/campaigns/campaign-dispatch.service.js';
import { MessageRetention } from '#outbound/campaigns/message-retention.service.js';
import { GeocodingSubscription } from '#outbound/geocoding/geocoding.subscription.js';
import { createNodeAgents } from '#outbound/sending/outbound-node-agent.client.js';
import { WebhookDispatch } from '#outbound/dispatch/webhook-dispatch.service.js';
import { DispatcherModule } from './dispatcher.module.js';
import { listenForHealth } from '#platform/operations/health-listener.js';

/**
 * From the signal on, and shorter than the time that a process has to stop (see stop.ts): the results of what was sent must
 * still be recorded.
 */
const FINISH_WITHIN_MS = 12_000;

/** What runs until the process has to stop. */
const FOLLOWERS = [
  HistorySubscription,
  StatisticsSubscription,
  TransparencyLog,
  LogTimes,
  Reprojection,
  PhoneNormalization,
  PassChanges,
  DecoyCardCleanup,
  AddressUpkeep,
  CardLinkFollower,
  GeocodingSubscription,
  RetirementAnnouncements,
  MessageRetention,
  ImportDispatch,
  BounceMailbox,
] as const;

// Young garbage is collected all the time. One thread is faster at it than several, which would take the processor away
// from the database.
setFlagsFromString('--no-parallel-scavenge');
// What it holds is small beside its young generation, so V8 would collect everything several times a second, to keep the
// old generation within 1.3 times what it held.
setFlagsFromString('--heap-growing-percent=200');

const reporter = { program: 'dispatcher', format: findLogFormat(process.env) };
reportUnhandled(reporter);
try {
  await run(listenForStop());
} catch (error) {
  refuseToStart(error, reporter);
}

async function run(stopRequest: StopRequest): Promise<void> {
  const config = readConfig(process.env);
  if (!(await waitForDatabase(config, 'dispatcher', stopRequest.signal))) process.exit(0);
  await startTracing(config, 'dispatcher', createNodeAgents(config));
  const app = await NestFactory.createApplicationContext(DispatcherModule.forRoot(config), {
    logger: new Log(config, 'dispatcher'),
    abortOnError: false,
  });
  const log = new Logger('dispatcher');
  const webhooks = app.get(WebhookDispatch);
  const [readiness, signing] = [app.get(Readiness), app.get(CheckpointSigning)];
  readiness.addRequiredPart('webhooks', () => webhooks.isRunning);
  readiness.addOptionalPart('checkpoints', () => signing.isConsistent);
  app.get(AppleCertificate).addToReadiness(readiness);
  releaseStartMemory();
  const health = await listenForHealth(config, () => readiness.check(), {
    check: 'webhooks',
    isAlive: () => webhooks.isAlive,
  });
  await listenForMetrics(config, 'dispatcher', app.get(Registry, { strict: false }));
  await app.get(ProcessSession, { strict: false }).start('dispatcher');
  const [messages, passes] = [app.get(MessageDispatch), app.get(PassDispatch)];
  const campaigns = app.get(CampaignDispatch);
  for (const sending of [webhooks, messages, passes, campaigns]) sending.start();
  const stopping = new AbortController();
  const { signal: stop } = stopping;
  const followers = FOLLOWERS.map((follower) => app.get(follower).run(stop));
  followers.push(app.get(EventStore).maintain(stop));
  const checking = app
    .get(StartCheck)
    .reportReadModelsAhead(stopping.signal)
    .catch((error: unknown) =>
      log.warn(`the read models could not be checked: ${getErrorMessage(error)}`),
    );
  log.log(`started; health on port ${getPort(health)}`);
  const signal = await stopRequest.received;
  readiness.stop();
  // All at once: what begins nothing new must not wait for what takes long to end.
  stopping.abort();
  const [left] = await Promise.all([
    webhooks.stop(FINISH_WITHIN_MS),
    messages.stop(FINISH_WITHIN_MS),
    passes.stop(FINISH_WITHIN_MS),
    campaigns.stop(FINISH_WITHIN_MS),
    checking,
    ...followers,
  ]);
  await app.close();
  log.log(`stopped by ${signal}${left > 0 ? `; ${left} deliveries will be sent again` : ''}`);
  // Unfinished attempts may still hold sockets open.
  process.exit(0);
}
