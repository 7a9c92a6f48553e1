import type { FastifyRequest } from 'fastify';
import { negotiateLanguage } from '#platform/http/negotiation.js';
import { getTranslations, LANGUAGE_CODES, type Localization } from '#translations/translations.js';

/** Returns the texts in the language that the browser prefers. */
export function localizeRequest(request: Pick<FastifyRequest, 'headers'>): Localization {
  return getTranslations(negotiateLanguage(request, LANGUAGE_CODES));
}
