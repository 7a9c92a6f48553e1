import type { CommandContext } from '#platform/kernel/aggregate.js';
import type { CapKind } from '#platform/event-store/port/event-store.js';
import { Config } from '#configuration/config.js';
import {
  CreateCommand,
  handleChange,
  handleCreation,
  RecordCommand,
  UpdateCommand,
  type RecordPlan,
} from '#platform/event-store/commands/record-commands.js';
import {
  card,
  archiveCard,
  createCard,
  setStripImage,
  unarchiveCard,
  updateCard,
  type Card,
} from './card.js';
import { toCardJson, type CardJson } from './card.dto.js';
import type { CardAttributes, CardEvent } from './card.events.js';
import { CardsService } from './cards.service.js';
import { ISSUES } from '#translations/issues.js';

const cardCap: CapKind = {
  table: card.table,
  ownerColumn: 'account_id',
  issue: ISSUES.too_many_cards,
  resolution: 'Change a card that is archived.',
};

export class CreateCard extends CreateCommand<CardAttributes, CardJson> {}
export class UpdateCard extends UpdateCommand<Partial<CardAttributes>, CardJson> {}
export class ArchiveCard extends RecordCommand<CardJson> {}
export class UnarchiveCard extends RecordCommand<CardJson> {}

export class SetStripImage extends RecordCommand<CardJson> {
  /** @param picture SHA-256 of what `UploadedPictures` has stored */
  constructor(
    context: CommandContext,
    id: number,
    readonly picture: string,
  ) {
    super(context, id);
  }
}

export const cardHandlers = [
  handleCreation(
    CreateCard,
    card,
    [Config],
    ({ context: { accountId }, attributes }, id, { quotas }) => ({
      decide: () => ({
        events: createCard(id, accountId, attributes),
        cap: { kind: cardCap, owner: accountId, id, max: quotas.cards },
      }),
      respond: ({ state }) => toCardJson(state, { rewards: 0, customerCards: 0 }),
    }),
  ),
  handleChange(UpdateCard, card, [CardsService], ({ id, changes }, cards) =>
    planChange(cards, id, (state) => updateCard(state, changes)),
  ),
  handleChange(ArchiveCard, card, [CardsService], ({ id }, cards) =>
    planChange(cards, id, archiveCard),
  ),
  handleChange(UnarchiveCard, card, [CardsService], ({ id }, cards) =>
    planChange(cards, id, unarchiveCard),
  ),
  handleChange(SetStripImage, card, [CardsService], ({ id, picture }, cards) =>
    planChange(cards, id, (state) => setStripImage(state, picture)),
  ),
];

type Counts = Parameters<typeof toCardJson>[1];

function planChange(
  cards: CardsService,
  id: number,
  decide: (state: Card | undefined) => CardEvent[],
): RecordPlan<Card, CardEvent, Counts, CardJson> {
  return {
    load: () => cards.findCounts(id),
    decide,
    respond: ({ state, inputs }) => toCardJson(state, inputs),
  };
}
