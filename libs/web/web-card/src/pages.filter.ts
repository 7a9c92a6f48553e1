import { Catch, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { getMessageWithCause } from '#kernel/errors.js';
import { LANGUAGE_CODES } from '#kernel/languages.js';
import { isTransient } from '#database/connection.js';
import type { AuthenticatedRequest } from '#http/caller.js';
import { negotiateLanguage } from '#http/negotiation.js';
import { renderMessagePage, type Page } from './card-page.js';
import { findCardTranslations, type CardLocalization } from './translations.js';

/** Renders an error of the card's page as HTML. */
@Catch()
export class PagesFilter implements ExceptionFilter {
  private readonly log = new Logger('pages');

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<AuthenticatedRequest>();
    request.failure = error;
    const canRetry = isTransient(error);
    const about = { request_id: request.requestId };
    if (canRetry) this.log.warn(getMessageWithCause(error), about);
    else {
      const stack = error instanceof Error ? error.stack : undefined;
      this.log.error(getMessageWithCause(error), about, stack);
    }
    const reply = http.getResponse<FastifyReply>();
    const { t, locale } = negotiateTranslations(request, reply);
    void reply.header('cache-control', 'no-store').header('retry-after', 10);
    void sendPage(
      reply.status(canRetry ? 503 : 500),
      renderMessagePage(locale, t.unavailable, t.unavailableWhy),
    );
  }
}

/** Negotiates the language with the browser, where no store is known. */
export function negotiateTranslations(
  request: FastifyRequest,
  reply: FastifyReply,
): CardLocalization {
  return findCardTranslations(negotiateLanguage(request, reply, LANGUAGE_CODES));
}

export async function sendPage(reply: FastifyReply, { body, policy }: Page): Promise<void> {
  await reply
    .type('text/html; charset=utf-8')
    .header('content-security-policy', policy)
    .header('x-robots-tag', 'noindex, nofollow')
    .send(body);
}
