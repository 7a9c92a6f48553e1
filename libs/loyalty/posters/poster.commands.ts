import { randomInt } from 'node:crypto';
import { Config } from '#configuration/config.js';
import {
  CreateCommand,
  handleChange,
  handleCreation,
  RecordCommand,
  UpdateCommand,
} from '#platform/event-store/commands/record-commands.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { toStreamName } from '#platform/event-store/read-models/read-models.js';
import {
  createPoster,
  deletePoster,
  poster,
  updatePoster,
  type CardDesign,
  type NewPoster,
} from './poster.js';
import type { PosterJson } from './poster.dto.js';
import { posterCap, posterReadModel } from './poster.entity.js';
import type { PosterAttributes } from './poster.events.js';
import { PostersService } from './posters.service.js';

const SLUG_ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 131 bits: slugs cannot be guessed. */
const SLUG_LENGTH = 22;

export class CreatePoster extends CreateCommand<NewPoster, PosterJson> {}
export class UpdatePoster extends UpdateCommand<Partial<PosterAttributes>, PosterJson> {}
export class DeletePoster extends RecordCommand<void> {}

export const posterHandlers = [
  handleCreation(
    CreatePoster,
    posterReadModel,
    [PostersService, PersonalKeys, Config],
    ({ context: { accountId }, attributes }, id, posters, keys, { quotas }) => {
      const slug = createSlug();
      return {
        load: () => posters.getCardDesign(accountId, attributes.cardId),
        decide: (_state, card: CardDesign) => ({
          events: createPoster({ id, accountId, slug }, card, attributes),
          claims: [keys.createClaim(accountId, 'poster_slug', slug, toStreamName(poster, id))],
          cap: { kind: posterCap, owner: accountId, id, max: quotas.posters },
        }),
        respond: ({ state }) => posters.toJson(state),
      };
    },
  ),
  handleChange(UpdatePoster, posterReadModel, [PostersService], ({ changes }, posters) => ({
    decide: (current) => updatePoster(current, changes),
    respond: ({ state }) => posters.toJson(state),
  })),
  handleChange(DeletePoster, posterReadModel, [], () => ({
    decide: deletePoster,
    respond: () => undefined,
  })),
];

function createSlug(): string {
  return Array.from({ length: SLUG_LENGTH }, () =>
    SLUG_ALPHABET.charAt(randomInt(SLUG_ALPHABET.length)),
  ).join('');
}
