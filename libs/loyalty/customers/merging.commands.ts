import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { getNow } from '#platform/kernel/clock.js';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { ConflictError, type Claim, type Json } from '#platform/event-store/port/event-store.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { toStreamName } from '#platform/event-store/read-models/read-models.js';
import {
  toStreamDecision,
  toStreamRef,
  MultiStreamCommands,
  type MultiStreamDecision,
  type StreamDecision,
  type FindState,
} from '#platform/event-store/commands/multi-stream-commands.js';
import {
  absorbCard,
  giveBackStamps,
  moveCard,
  mergeCard,
  restoreCard,
  type CardRules,
} from '#loyalty/stamping/card-merging.js';
import { ClaimHolders } from '#loyalty/stamping/claim-holders.service.js';
import { customerCard, type CustomerCard, type Template } from '#loyalty/stamping/customer-card.js';
import { toCustomerCardJson } from '#loyalty/stamping/customer-card.dto.js';
import {
  findClaims,
  customerCardCap,
  customerCardReadModel,
} from '#loyalty/stamping/customer-card.entity.js';
import type { CustomerCardEvent } from '#loyalty/stamping/customer-card.events.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import { assertPersonSize, type PersonSize } from '#loyalty/stamping/person-size.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import { createClaimChanges, executeWithClaims } from './customer.commands.js';
import { type Customer, type StoreRegion } from './customer.js';
import { toCustomerJson, type CustomerJson } from './customer.dto.js';
import { customerReadModel } from './customer.entity.js';
import type { MergedCards } from './customer.events.js';
import { mergeCustomers, unmergeCustomers } from './merging.js';
import { StoreRegions } from './store-regions.service.js';
import { ISSUES } from '#translations/issues.js';

type MergeContext = {
  cardIds: number[];
  templates: Map<number, { template: Template }>;
  installed: Set<number>;
};

/** The customers named in a request: the one in the path goes on. */
type Pair = { survivorId: number; otherId: number };

export class MergeCustomers extends Command<CustomerJson> {
  constructor(
    readonly context: CommandContext,
    readonly pair: Pair,
  ) {
    super();
  }
}

export class UnmergeCustomers extends Command<CustomerJson> {
  constructor(
    readonly context: CommandContext,
    readonly pair: Pair,
  ) {
    super();
  }
}

@CommandHandler(MergeCustomers)
export class MergeCustomersHandler implements ICommandHandler<MergeCustomers> {
  constructor(
    private readonly severalStreams: MultiStreamCommands,
    private readonly keys: PersonalKeys,
    private readonly templates: TemplatesService,
    private readonly customerCards: CustomerCardsService,
  ) {}

  async execute({ context, pair }: MergeCustomers): Promise<CustomerJson> {
    const { survivorId, otherId } = pair;
    if (survivorId === otherId) {
      throw new RejectedError({ from_customer_id: [ISSUES.same_customer] });
    }
    return this.severalStreams.handle<MergeContext & { size: PersonSize }, CustomerJson>({
      context,
      load: async () => ({
        ...(await loadMergeContext(pair, this.customerCards, this.templates)),
        size: await this.customerCards.measurePerson([survivorId, otherId]),
      }),
      decide: (stateOf, loaded) => {
        const [survivor, other] = getBoth(stateOf, context, pair);
        const cards = getCards(stateOf, loaded, pair);
        const merge = planMerge(cards, pair);
        const events = mergeCustomers(survivor, other, merge);
        assertMeasured(loaded.size, survivor, other);
        assertPersonSize(loaded.size);
        const claims = createCustomerClaims(
          this.keys,
          context,
          [survivor, events.survivor],
          [other, events.other],
        );
        const moved = createMergedParts(cards, merge, survivorId, loaded);
        return addCardClaims(this.keys, context, cards, {
          streamDecisions: [
            toStreamDecision(customerReadModel, survivorId, events.survivor),
            toStreamDecision(customerReadModel, otherId, events.other),
            ...moved,
          ],
          ...claims,
          cap: {
            kind: customerCardCap,
            owner: otherId,
            id: 0,
            max: cards.filter(({ customerId }) => customerId === otherId).length + 1,
          },
        });
      },
      respond: (stateOf, loaded, now) =>
        renderSurvivor(stateOf, loaded, pair, this.customerCards, now),
      // What the two hold moves between them, so somebody else can only have taken it since it was looked at.
      retriedKinds: ['enrolment', 'email', 'phone', 'external_references', customerCardCap.table],
    });
  }
}

@CommandHandler(UnmergeCustomers)
export class UnmergeCustomersHandler implements ICommandHandler<UnmergeCustomers> {
  constructor(
    private readonly severalStreams: MultiStreamCommands,
    private readonly keys: PersonalKeys,
    private readonly templates: TemplatesService,
    private readonly regions: StoreRegions,
    private readonly customerCards: CustomerCardsService,
    private readonly holders: ClaimHolders,
  ) {}

  async execute({ context, pair }: UnmergeCustomers): Promise<CustomerJson> {
    const { survivorId, otherId } = pair;
    return executeWithClaims(this.holders, context, (request) =>
      this.severalStreams.handle<MergeContext & { region: StoreRegion }, CustomerJson>({
        context,
        load: async () => ({
          ...(await loadMergeContext(pair, this.customerCards, this.templates)),
          region: await this.regions.get(context.accountId),
        }),
        decide: (stateOf, loaded) => {
          const [survivor, other] = getBoth(stateOf, context, pair);
          const { merge, ...events } = unmergeCustomers(survivor, other, loaded.region);
          const cards = getCards(stateOf, loaded, pair);
          const claims = createCustomerClaims(
            this.keys,
            context,
            [survivor, events.survivor],
            [other, events.other],
          );
          request.claims = claims.claims;
          return addCardClaims(this.keys, context, cards, {
            streamDecisions: [
              toStreamDecision(customerReadModel, survivorId, events.survivor),
              toStreamDecision(customerReadModel, otherId, events.other),
              ...createUnmergedParts(cards, merge.cards, otherId, loaded),
            ],
            ...claims,
          });
        },
        respond: (stateOf, loaded, now) =>
          renderSurvivor(stateOf, loaded, pair, this.customerCards, now),
        retriedKinds: ['enrolment'],
      }),
    );
  }
}

export const mergingHandlers = [MergeCustomersHandler, UnmergeCustomersHandler];

async function loadMergeContext(
  { survivorId, otherId }: Pair,
  customerCards: CustomerCardsService,
  templates: TemplatesService,
) {
  const cards = await customerCards.listIds([survivorId, otherId]);
  const cardIds = cards.map(({ id }) => id);
  return {
    cardIds,
    installed: await customerCards.findInstalled(cardIds, getNow()),
    templates: await templates.load([...new Set(cards.map(({ cardId }) => cardId))]),
    streams: [
      toStreamRef(customerReadModel, survivorId),
      toStreamRef(customerReadModel, otherId),
      ...cards.map(({ id }) => toStreamRef(customerCardReadModel, id)),
    ],
  };
}

/** @throws NotFoundError */
function getBoth(
  stateOf: FindState,
  { accountId }: CommandContext,
  { survivorId, otherId }: Pair,
): [Customer, Customer] {
  const [survivor, other] = [survivorId, otherId].map((id) => stateOf(customerReadModel, id));
  if (survivor?.accountId !== accountId || other?.accountId !== accountId) {
    throw new NotFoundError('Customer');
  }
  // The other half of a merge may still be being written: what it leads to cannot be decided yet.
  const isMerging = survivor.merges?.some(({ customerId }) => customerId === otherId) ?? false;
  if (isMerging !== (other.mergedInto?.customerId === survivorId)) throw new ConflictError();
  return [survivor, other];
}

/** @throws ConflictError when customers were merged into these two, or unmerged, since the measurement */
function assertMeasured({ merges }: PersonSize, ...customers: Customer[]): void {
  const count = customers.reduce((sum, customer) => sum + (customer.merges?.length ?? 0), 0);
  if (merges !== count) throw new ConflictError();
}

/** Gets the cards of both customers, as they are now. @throws ConflictError when a card has moved */
function getCards(
  stateOf: FindState,
  { cardIds }: MergeContext,
  { survivorId, otherId }: Pair,
): CustomerCard[] {
  return cardIds.map((id) => {
    const card = stateOf(customerCardReadModel, id);
    if (!card || ![survivorId, otherId].includes(card.customerId)) throw new ConflictError();
    return card;
  });
}

/** Plans which cards change hands, and which are added to one of the same template (ADR-0035). */
export function planMerge(cards: CustomerCard[], { survivorId, otherId }: Pair): MergedCards {
  const plan: MergedCards = { moved: [], added: [] };
  for (const card of cards.filter(({ customerId }) => customerId === otherId)) {
    const into = cards.find(
      ({ customerId, cardId, mergedInto }) =>
        customerId === survivorId && cardId === card.cardId && !mergedInto,
    );
    if (into && !card.mergedInto) plan.added.push({ fromId: card.id, intoId: into.id });
    else plan.moved.push(card.id);
  }
  return plan;
}

function createMergedParts(
  cards: CustomerCard[],
  { moved, added }: MergedCards,
  survivorId: number,
  context: MergeContext,
): StreamDecision[] {
  const byId = createFinder(cards);
  return [
    ...moved.map((id) =>
      toStreamDecision(customerCardReadModel, id, moveCard(byId(id), survivorId)),
    ),
    ...added.flatMap(({ fromId, intoId }) => {
      const [from, into] = [byId(fromId), byId(intoId)];
      const template = getTemplate(context, into);
      const { stampsCount: stamps, unlocked } = from;
      return [
        toStreamDecision(customerCardReadModel, fromId, mergeCard(from, into)),
        toStreamDecision(
          customerCardReadModel,
          intoId,
          absorbCard(into, { id: fromId, stamps, unlocked }, template),
          template as Json,
        ),
      ];
    }),
  ];
}

function createUnmergedParts(
  cards: CustomerCard[],
  { moved, added }: MergedCards,
  otherId: number,
  context: MergeContext,
): StreamDecision[] {
  const byId = createFinder(cards);
  return [
    ...moved.map((id) => toStreamDecision(customerCardReadModel, id, moveCard(byId(id), otherId))),
    ...added.flatMap(({ fromId, intoId }) => {
      const [from, into] = [byId(fromId), byId(intoId)];
      const template = getTemplate(context, from);
      const back = giveBackStamps(into, fromId, from.mergedInto?.stamps ?? 0);
      const [unmerged] = back;
      if (unmerged?.type !== 'CustomerCardUnmerged') throw new Error('giving back says how much');
      return [
        toStreamDecision(customerCardReadModel, intoId, back),
        toStreamDecision(
          customerCardReadModel,
          fromId,
          restoreCard(from, otherId, unmerged.data, template),
          template as Json,
        ),
      ];
    }),
  ];
}

function createFinder(cards: CustomerCard[]): (id: number) => CustomerCard {
  return (searchedId) => {
    const card = cards.find(({ id }) => id === searchedId);
    if (!card) throw new ConflictError();
    return card;
  };
}

function getTemplate({ templates }: MergeContext, { cardId }: CustomerCard): CardRules {
  const versioned = templates.get(cardId);
  if (!versioned) throw new ConflictError();
  const { rewards, version } = versioned.template;
  return { rewards, version };
}

type Claims = { claims: Claim[]; releases: Claim[] };

function createCustomerClaims(
  keys: PersonalKeys,
  context: CommandContext,
  ...changes: [Customer, Parameters<typeof createClaimChanges>[4]][]
): Claims {
  const moved = changes.map(([before, events]) =>
    createClaimChanges(keys, context, before.id, before, events),
  );
  return {
    claims: moved.flatMap(({ claims }) => claims),
    releases: moved.flatMap(({ releases }) => releases),
  };
}

/** Adds the claims on enrolments, which move with the cards. */
function addCardClaims(
  keys: PersonalKeys,
  { accountId }: CommandContext,
  cards: CustomerCard[],
  decision: MultiStreamDecision & Claims,
): MultiStreamDecision {
  const claims = [...decision.claims];
  const releases = [...decision.releases];
  for (const { readModel, id, events } of decision.streamDecisions) {
    if (readModel.table !== customerCardReadModel.table) continue;
    const before = cards.find((card) => card.id === id);
    const stream = toStreamName(customerCard, id);
    for (const event of events as CustomerCardEvent[]) {
      const changes = findClaims(event, before);
      for (const { kind, value } of changes.claims ?? []) {
        claims.push(keys.createClaim(accountId, kind, value, stream));
      }
      for (const { kind, value } of changes.releases ?? []) {
        releases.push(keys.createClaim(accountId, kind, value, stream));
      }
    }
  }
  return { ...decision, claims, releases };
}

function renderSurvivor(
  stateOf: FindState,
  { cardIds, templates, installed }: MergeContext,
  { survivorId }: Pair,
  customerCards: CustomerCardsService,
  now: Date,
): CustomerJson {
  const survivor = stateOf(customerReadModel, survivorId);
  if (!survivor) throw new NotFoundError('Customer');
  const cards = cardIds.flatMap((id) => {
    const card = stateOf(customerCardReadModel, id);
    const template = card && templates.get(card.cardId)?.template;
    if (!template || card.customerId !== survivorId || card.mergedInto) return [];
    return [
      toCustomerCardJson(card, customerCards.createRenderContext(template, now, installed.has(id))),
    ];
  });
  return toCustomerJson(survivor, cards);
}
