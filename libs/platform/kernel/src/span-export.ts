import { context, diag, DiagLogLevel, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { Logger } from '@nestjs/common';
import type { ProcessName } from './process-name.js';
import { newId } from './randomness.js';
import { VERSION } from './version.js';

const ANSWERS_WITHIN_MS = 5_000;
const LEFT_SENT_WITHIN_MS = 1_000;

/**
 * OTLP over HTTP, in JSON. Interval, sampling and headers are set by the library's own variables (OTEL_BSP_…,
 * OTEL_TRACES_SAMPLER, OTEL_EXPORTER_OTLP_HEADERS).
 * @returns what shuts it down
 */
export function exportSpans(endpoint: string, program: ProcessName): () => Promise<void> {
  sayOnce();
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({
      'service.name': `inkpad-${program}`,
      'service.version': VERSION,
      'service.instance.id': newId(),
    }),
    spanProcessors: [
      new BatchSpanProcessor(
        new OTLPTraceExporter({
          url: `${endpoint}/v1/traces`,
          timeoutMillis: ANSWERS_WITHIN_MS,
        }),
      ),
    ],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  return async () => {
    // An unavailable collector must not delay shutdown.
    await Promise.race([provider.shutdown(), pauseOf(LEFT_SENT_WITHIN_MS)]);
  };
}

/** The service does without a collector: one line when it becomes unavailable, not one for each attempt. */
function sayOnce(): void {
  const log = new Logger('tracing');
  let said = false;
  const say = (message: string) => {
    if (said) return log.debug(message);
    said = true;
    log.warn('spans cannot be sent to OTEL_EXPORTER_OTLP_ENDPOINT; until they can, they are lost');
  };
  const ignore = () => undefined;
  diag.setLogger(
    { error: say, warn: ignore, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true },
  );
}

function pauseOf(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds).unref());
}
