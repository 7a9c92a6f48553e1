import { context, diag, DiagLogLevel, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { Logger } from '@nestjs/common';
import type { Agent } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { ProcessName } from './process-name.js';
import { createId } from './randomness.js';
import { VERSION } from './version.js';

const EXPORT_TIMEOUT_MS = 5_000;
const SHUTDOWN_TIMEOUT_MS = 1_000;

/**
 * Exports spans by OTLP over HTTP, in JSON. Interval, sampling and headers are set by the library's own variables
 * (OTEL_BSP_…, OTEL_TRACES_SAMPLER, OTEL_EXPORTER_OTLP_HEADERS).
 * @returns a function that shuts it down
 */
export function exportSpans(
  endpoint: string,
  program: ProcessName,
  createAgent?: (protocol: string) => Agent,
): () => Promise<void> {
  warnOnce();
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({
      'service.name': `inkpad-${program}`,
      'service.version': VERSION,
      'service.instance.id': createId(),
    }),
    spanProcessors: [
      new BatchSpanProcessor(
        new OTLPTraceExporter({
          url: `${endpoint}/v1/traces`,
          timeoutMillis: EXPORT_TIMEOUT_MS,
          ...(createAgent && { httpAgentOptions: createAgent }),
        }),
      ),
    ],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  return async () => {
    // An unavailable collector must not delay shutdown.
    await Promise.race([provider.shutdown(), wait(SHUTDOWN_TIMEOUT_MS, undefined, { ref: false })]);
  };
}

/** Logs one warning when the collector becomes unavailable, not one for each attempt. The service works without it. */
function warnOnce(): void {
  const log = new Logger('tracing');
  let hasWarned = false;
  const warn = (message: string) => {
    if (hasWarned) return log.debug(message);
    hasWarned = true;
    log.warn('spans cannot be sent to OTEL_EXPORTER_OTLP_ENDPOINT; until they can, they are lost');
  };
  const ignore = () => undefined;
  diag.setLogger(
    { error: warn, warn: ignore, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true },
  );
}
