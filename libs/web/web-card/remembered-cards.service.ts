import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { validate as isUuid } from 'uuid';
import { Config } from '#configuration/config.js';
import { Cookies } from '#web/pages/cookies.js';

const NAME = 'cards';
/** As long as browsers keep a cookie at most. */
const MAX_AGE_SECONDS = 400 * 24 * 3_600;
const MAX_CARDS = 10;

type RememberedCard = { cardId: number; uuid: string };

/**
 * Remembers in a cookie which cards a browser has signed up for, so that the poster leads it to its own card instead of
 * issuing another one (ADR-0051). The links in it are those that the browser has opened anyway.
 */
@Injectable()
export class RememberedCards {
  private readonly cookies: Cookies;

  constructor({ publicUrl }: Config) {
    this.cookies = new Cookies(publicUrl);
  }

  /** Finds the link of the card that this browser has signed up for. Unverified: anybody can set a cookie. */
  find(request: FastifyRequest, cardId: number): string | undefined {
    return this.read(request).find((card) => card.cardId === cardId)?.uuid;
  }

  remember(request: FastifyRequest, reply: FastifyReply, card: RememberedCard): void {
    const others = this.read(request).filter(({ cardId }) => cardId !== card.cardId);
    const cards = [card, ...others].slice(0, MAX_CARDS);
    const value = cards.map(({ cardId, uuid }) => `${cardId}.${uuid}`).join('~');
    this.cookies.set(reply, NAME, value, { maxAgeSeconds: MAX_AGE_SECONDS });
  }

  /** Replaces the link of a remembered card by the one that was opened last, which may come from a message. */
  update(request: FastifyRequest, reply: FastifyReply, { cardId, uuid }: RememberedCard): void {
    const current = this.find(request, cardId);
    if (current !== undefined && current !== uuid) this.remember(request, reply, { cardId, uuid });
  }

  private read(request: FastifyRequest): RememberedCard[] {
    const value = this.cookies.read(request, NAME) ?? '';
    return value.split('~').flatMap((part) => {
      const [id = '', uuid = ''] = part.split('.', 2);
      return /^[1-9]\d{0,15}$/.test(id) && isUuid(uuid) ? [{ cardId: Number(id), uuid }] : [];
    });
  }
}
