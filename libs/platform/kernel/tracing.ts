import {
  context,
  INVALID_SPAN_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Span,
} from '@opentelemetry/api';
import type { Agent } from 'node:http';
import type { PlatformConfig } from './platform-config.js';
import type { ProcessName } from './process-name.js';
import { VERSION } from './version.js';

/** Creates spans; a no-op until `startTracing`. */
export const tracer = trace.getTracer('inkpad', VERSION);

type Options = {
  kind?: SpanKind;
  /** The span's parent; by default the active one. */
  parent?: Context;
};

const NO_SPAN = trace.wrapSpanContext(INVALID_SPAN_CONTEXT);

let isStarted = false;
let shutDown: () => Promise<void> = () => Promise.resolve();

/**
 * Loads the libraries only where OTEL_EXPORTER_OTLP_ENDPOINT is set.
 * @param createAgent for a connection through a proxy; undefined: connects directly
 */
export async function startTracing(
  { otlpEndpoint }: PlatformConfig,
  program: ProcessName,
  createAgent?: (protocol: string) => Agent,
): Promise<void> {
  if (otlpEndpoint === null) return;
  const { exportSpans } = await import('./span-export.js');
  shutDown = exportSpans(otlpEndpoint, program, createAgent);
  isStarted = true;
}

/** Sends remaining spans, within a second. */
export async function stopTracing(): Promise<void> {
  await shutDown();
}

/** Runs work in a span. Attributes identify things by id, never people, secrets or contents. */
export function runInSpan<R>(
  name: string,
  attributes: Attributes,
  work: (span: Span) => Promise<R>,
  { kind = SpanKind.INTERNAL, parent = context.active() }: Options = {},
): Promise<R> {
  if (!isStarted) return work(NO_SPAN);
  return tracer.startActiveSpan(name, { kind, attributes }, parent, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      recordError(span, error);
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Records only the kind of the error: its message may name people. */
function recordError(span: Span, error: unknown): void {
  const kind = error instanceof Error ? error.constructor.name : typeof error;
  span.setAttribute('error.type', kind);
  span.setStatus({ code: SpanStatusCode.ERROR });
}
