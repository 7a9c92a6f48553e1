import type { FastifyInstance } from 'fastify';
import {
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
  type Span,
} from '@opentelemetry/api';
import { tracer } from '#platform/kernel/tracing.js';
import type { AuthenticatedRequest } from './caller.js';
import { getRouteAccess } from './route-access.js';

type TracedRequest = AuthenticatedRequest & { trace?: Context };

/**
 * Creates a span for each request, within the caller's trace if there is one (`traceparent`). Spans hold route
 * patterns and ids, never paths or queries.
 */
export function traceRequests(server: FastifyInstance): void {
  server.addHook('onRequest', async (request, reply) => {
    const { pattern: route } = getRouteAccess(request);
    if (route.startsWith('/health')) return;
    const { method, headers } = request;
    const caller = propagation.extract(ROOT_CONTEXT, headers);
    const span = tracer.startSpan(`${method} ${route}`, { kind: SpanKind.SERVER }, caller);
    span.setAttributes({
      'http.request.method': method,
      'http.route': route,
      'inkpad.request_id': request.id,
    });
    (request as TracedRequest).trace = trace.setSpan(caller, span);
    reply.raw.once('close', () =>
      endSpan(span, reply.raw.writableFinished ? reply.statusCode : null),
    );
  });
  // Not earlier: the body is parsed outside of any trace.
  server.addHook('preHandler', (request, _reply, done) => {
    context.with((request as TracedRequest).trace ?? ROOT_CONTEXT, done);
  });
}

/** @param status null: no response was sent */
function endSpan(span: Span, status: number | null): void {
  if (status !== null) span.setAttribute('http.response.status_code', status);
  if (status === null || status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}
