import type { Config } from '#configuration/config.js';
import { isRetired } from '#platform/http/versioning.js';

/** Renders the state of the version, for the top of the page about versions. */
export function renderVersionState(config: Config, now: Date): string {
  const { deprecatedAt, sunsetAt } = config.v1;
  const day = (moment: Date) => `<time>${moment.toISOString()}</time>`;
  const since =
    deprecatedAt && `deprecated ${deprecatedAt > now ? 'from' : 'since'} ${day(deprecatedAt)}`;
  const until = sunsetAt && `retired ${isRetired(config, now) ? 'since' : 'from'} ${day(sunsetAt)}`;
  const state =
    [since, until].filter((part) => part !== null).join(', ') || 'current, and no end is planned';
  return `<p class="state">Version v1 is ${state}.</p>`;
}
