import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import type { Actor, CommandContext } from '#platform/kernel/aggregate.js';
import { NotFoundError, RejectedError, TakenError } from '#platform/kernel/errors.js';
import { IdTakenError, takeNextId, withNewId } from '#platform/database/ids.js';
import {
  ClaimTakenError,
  KeyTakenOverError,
  type Cap,
  type Claim,
} from '#platform/event-store/port/event-store.js';
import { startStream } from '#platform/event-store/commands/command-plan.js';
import { CommandPipeline } from '#platform/event-store/commands/handle-command.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { toStreamName } from '#platform/event-store/read-models/read-models.js';
import { ClaimHolders } from '#loyalty/stamping/claim-holders.service.js';
import type { ImportedCard } from '#loyalty/stamping/imported-stamps.js';
import { createEnrolment, retryUntilCodeIsFree } from '#loyalty/stamping/customer-card.commands.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';
import {
  toCustomerCardDetailJson,
  toCustomerCardJson,
  type RenderContext,
} from '#loyalty/stamping/customer-card.dto.js';
import { customerCardReadModel } from '#loyalty/stamping/customer-card.entity.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import {
  createCustomer,
  customer,
  findMovedValues,
  updateCustomer,
  type Customer,
  type CustomerChanges,
  type UniqueCustomerValue,
} from './customer.js';
import { requestCardLinks } from './card-links.js';
import { findCustomerSource } from './customer-source.js';
import { toCustomerJson, type CreatedCustomerJson, type CustomerJson } from './customer.dto.js';
import { type CustomerInput } from './customer-input.dto.js';
import { customerReadModel } from './customer.entity.js';
import { CustomerQuota } from './customer-quota.service.js';
import type { AgreedTexts, CustomerEvent, PosterSignup } from './customer.events.js';
import { findConsentRule, StoreRegions } from './store-regions.service.js';
import { ISSUES } from '#translations/issues.js';

export class CreateCustomer extends Command<CreatedCustomerJson> {
  constructor(
    readonly context: CommandContext,
    readonly input: CustomerInput,
    /** Null: not enrolled on any card yet. */
    readonly cardId: number | null,
    readonly sendCardLinks: boolean,
    /** Of a form: what the person has agreed to there. */
    readonly agreed: AgreedTexts | null = null,
    readonly importedCard: ImportedCard = {},
    /** Of a form: the poster that led there. */
    readonly signup: PosterSignup | null = null,
  ) {
    super();
  }
}

/** @property customerCardId null: the customer gets no card */
type NewCustomerIds = { accountId: number; id: number; customerCardId: number | null };

@CommandHandler(CreateCustomer)
export class CreateCustomerHandler implements ICommandHandler<CreateCustomer> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly templates: TemplatesService,
    private readonly keys: PersonalKeys,
    private readonly regions: StoreRegions,
    private readonly customerCards: CustomerCardsService,
    private readonly holders: ClaimHolders,
    private readonly quota: CustomerQuota,
    private readonly pool: Pool,
  ) {}

  async execute(command: CreateCustomer): Promise<CreatedCustomerJson> {
    return executeWithClaims(this.holders, command.context, (request) =>
      retryUntilCodeIsFree(() =>
        withNewId(this.pool, customerReadModel.table, (id) => {
          const { keyed } = command.context;
          // An earlier try may have been for another id.
          if (keyed) keyed.subjectId = id;
          return this.create(id, command, request);
        }),
      ),
    );
  }

  private async create(
    id: number,
    command: CreateCustomer,
    request: RequestedClaims,
  ): Promise<CreatedCustomerJson> {
    const {
      context: { accountId, channel },
      cardId,
    } = command;
    const cap = await this.quota.findCap(accountId, id, channel === 'poster');
    const customerCardId =
      cardId === null ? null : await takeNextId(this.pool, customerCardReadModel.table);
    await this.keys.create(id, customerReadModel.table);
    try {
      return await this.record(command, { accountId, id, customerCardId }, { cap, request });
    } catch (error) {
      if (hasWrittenNothing(error)) await this.keys.discard(id);
      throw error;
    }
  }

  private record(
    command: CreateCustomer,
    ids: NewCustomerIds,
    { cap, request }: { cap: Cap | undefined; request: RequestedClaims },
  ): Promise<CreatedCustomerJson> {
    const { input, cardId, sendCardLinks, agreed, signup } = command;
    const { accountId, id, customerCardId } = ids;
    const context = { ...command.context, actor: findActor(command.context, id) };
    return this.pipeline.handleCommand({
      readModel: customerReadModel,
      id,
      isNew: true,
      context,
      load: async () => ({
        region: await this.regions.get(accountId),
        template: cardId === null ? null : await this.templates.get(accountId, cardId),
      }),
      decide: (_state, { region, template }, now) => {
        const card = this.enrol(ids, template, now, command.importedCard);
        const { marketingConsent, smsConsent, ...personal } = input;
        const rule = findConsentRule(context.channel, region);
        const waits = rule.needsConsentLink && (marketingConsent || smsConsent);
        const events = createCustomer(
          {
            customerId: id,
            accountId,
            source: findCustomerSource(context.channel),
            marketingConsent,
            smsConsent,
            sendCardLinks: (sendCardLinks || waits) && card !== undefined,
            agreed,
            signup,
            personal,
          },
          { ...region, ...rule, now },
        );
        const { claims } = createClaimChanges(this.keys, context, id, undefined, events);
        request.claims = claims;
        const newStreams =
          card && customerCardId !== null
            ? [startStream(customerCardReadModel, customerCardId, card.events)]
            : [];
        return {
          events,
          newStreams,
          claims: [...claims, ...(card?.claims ?? [])],
          ...(cap && { cap }),
        };
      },
      respond: ({ state, inputs: { template }, now, findNewState }) => {
        const card = findNewState(customerCardReadModel);
        if (!card || !template) return toCustomerJson(state, []);
        const renderContext = this.customerCards.createRenderContext(template, now, false);
        return toCreatedCustomerJson(state, card, renderContext);
      },
    });
  }

  /** Creates the customer card of a new customer; undefined without a template or a number for it. */
  private enrol(
    { accountId, id, customerCardId }: NewCustomerIds,
    template: Parameters<typeof createEnrolment>[2] | null,
    now: Date,
    importedCard: ImportedCard,
  ): ReturnType<typeof createEnrolment> | undefined {
    if (customerCardId === null || !template) return undefined;
    const ids = { id: customerCardId, accountId, customerId: id };
    return createEnrolment(this.keys, ids, template, now, importedCard);
  }
}

/** Tells whether an error says for certain that nothing was written. */
function hasWrittenNothing(error: unknown): boolean {
  return [RejectedError, NotFoundError, ClaimTakenError, KeyTakenOverError, IdTakenError].some(
    (type) => error instanceof type,
  );
}

export class UpdateCustomer extends Command<CustomerJson> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
    readonly changes: CustomerChanges,
  ) {
    super();
  }
}

@CommandHandler(UpdateCustomer)
export class UpdateCustomerHandler implements ICommandHandler<UpdateCustomer> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly keys: PersonalKeys,
    private readonly regions: StoreRegions,
    private readonly customerCards: CustomerCardsService,
    private readonly holders: ClaimHolders,
  ) {}

  async execute({ context, id, changes }: UpdateCustomer): Promise<CustomerJson> {
    return executeWithClaims(this.holders, context, (request) =>
      this.pipeline.handleCommand({
        readModel: customerReadModel,
        id,
        context,
        load: async () => ({
          region: await this.regions.get(context.accountId),
          cards: await this.customerCards.listByCustomer([id]),
        }),
        decide: (state, { region, cards }, now) => {
          const cardIds = (cards.get(id) ?? []).map((card) => card.id);
          const rule = findConsentRule(context.channel, region);
          const updates = updateCustomer(state, changes, { ...region, ...rule, now });
          const events = [...updates, ...requestConsentLinks(state, updates, cardIds, now)];
          const moved = createClaimChanges(this.keys, context, id, state, events);
          request.claims = moved.claims;
          return { events, ...moved };
        },
        respond: ({ state, inputs: { cards } }) => toCustomerJson(state, cards.get(id) ?? []),
      }),
    );
  }
}

/** Requests the links of a card where a consent waits for one from now on. */
function requestConsentLinks(
  state: Customer | undefined,
  updates: CustomerEvent[],
  cardIds: number[],
  now: Date,
): CustomerEvent[] {
  const [update] = updates;
  const [customerCardId] = cardIds;
  const waiting = update?.type === 'CustomerUpdated' ? update.data.unconfirmedConsents : undefined;
  const isNew = waiting?.some((kind) => !state?.unconfirmedConsents.includes(kind)) ?? false;
  if (!isNew || customerCardId === undefined) return [];
  return requestCardLinks(state, { customerCardId, cardIds }, now);
}

export const customerHandlers = [CreateCustomerHandler, UpdateCustomerHandler];

function toCreatedCustomerJson(
  state: Customer,
  card: CustomerCard,
  renderContext: RenderContext,
): CreatedCustomerJson {
  return {
    ...toCustomerJson(state, [toCustomerCardJson(card, renderContext)]),
    customer_card: toCustomerCardDetailJson(card, renderContext),
  };
}

/** Finds who acts: people who sign up act as the customer that they become. */
function findActor({ actor }: CommandContext, id: number): Actor {
  return actor.type === 'customer' ? { type: 'customer', id } : actor;
}

/** Creates the claims for a change of a customer: new values are claimed, former ones released. */
export function createClaimChanges(
  keys: PersonalKeys,
  { accountId }: CommandContext,
  id: number,
  before: Customer | undefined,
  events: CustomerEvent[],
): { claims: Claim[]; releases: Claim[] } {
  const stream = toStreamName(customer, id);
  const { added, released } = findMovedValues(before, events);
  const claim = ({ kind, value }: UniqueCustomerValue) =>
    keys.createClaim(accountId, kind, value, stream);
  return { claims: added.map(claim), releases: released.map(claim) };
}

/** Holds the claims of the last decision, in the order of e-mail address, phone number and references. */
export type RequestedClaims = { claims: Claim[] };

/**
 * Refuses the command if another customer holds what it claims; the kinds of these claims are the names of the fields.
 * @throws TakenError with the holder of the first of them
 */
export async function executeWithClaims<R>(
  holders: ClaimHolders,
  { accountId }: CommandContext,
  run: (request: RequestedClaims) => Promise<R>,
): Promise<R> {
  const request: RequestedClaims = { claims: [] };
  try {
    return await run(request);
  } catch (error) {
    if (!(error instanceof ClaimTakenError)) throw error;
    const id = await holders.find(accountId, request.claims, {
      rows: customerReadModel,
      mergedInto: ({ mergedInto }) => mergedInto?.customerId,
    });
    throw new TakenError(
      Object.fromEntries(error.kinds.map((kind) => [kind, [ISSUES.used_by_other_customer]])),
      'Look the customer up with the search, and use the one that exists.',
      id === undefined ? undefined : { type: 'customer', id },
    );
  }
}
