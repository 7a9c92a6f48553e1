import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import type { Location } from '#loyalty/locations/location.js';
import { LocationsService } from '#loyalty/locations/locations.service.js';
import { parsePositiveInteger } from '#web/pages/page-query.js';
import { Cookies } from '#web/pages/cookies.js';

const COOKIE = 'inkpad-counter-locations';
const COOKIE_SECONDS = 365 * 24 * 60 * 60;
/** So many stores fit into a cookie, with room to spare. */
const MAX_STORES = 100;
/** So many locations a page offers. */
const MAX_LOCATIONS = 200;

/**
 * Where a counter is. @property current null: the store has no location, or none of its several is chosen
 * @property hasChoice whether the store has several
 */
export type CounterLocation = { current: Location | null; hasChoice: boolean };

/** Remembers in a browser at which location it is, whoever is signed in there. */
@Injectable()
export class CounterLocations {
  private readonly cookies: Cookies;

  constructor(
    private readonly locations: LocationsService,
    config: Config,
  ) {
    this.cookies = new Cookies(config.publicUrl);
  }

  /** Finds where the counter is: at the only location of the store, or at the chosen one unless it was removed. */
  async find(request: FastifyRequest, accountId: number): Promise<CounterLocation> {
    const [first, second] = await this.list(accountId, 2);
    if (!second) return { current: first ?? null, hasChoice: false };
    const chosenId = this.readChoices(request).get(accountId) ?? 0;
    const current = chosenId === 0 ? null : await this.locations.findState(accountId, chosenId);
    return { current: current ?? null, hasChoice: true };
  }

  list(accountId: number, limit = MAX_LOCATIONS): Promise<Location[]> {
    return this.locations.listStates(accountId, { limit });
  }

  /** Remembers a location for the counter of a store. @param locationId 0 for none */
  choose(
    request: FastifyRequest,
    reply: FastifyReply,
    { accountId, locationId }: { accountId: number; locationId: number },
  ): void {
    const others = [...this.readChoices(request)].filter(([id]) => id !== accountId);
    const choice = locationId === 0 ? [] : [[accountId, locationId]];
    const choices = [...choice, ...others].slice(0, MAX_STORES);
    const value = choices.map((choice) => choice.join('-')).join('.');
    this.cookies.set(reply, COOKIE, value, { maxAgeSeconds: COOKIE_SECONDS });
  }

  /** Reads the chosen location of each store. Anybody can write a cookie, so what is no id is left out. */
  private readChoices(request: FastifyRequest): Map<number, number> {
    const choices = this.cookies.read(request, COOKIE)?.split('.') ?? [];
    return new Map(
      choices.flatMap((choice): [number, number][] => {
        const [accountId, locationId] = choice.split('-').map(parsePositiveInteger);
        return accountId && locationId ? [[accountId, locationId]] : [];
      }),
    );
  }
}
