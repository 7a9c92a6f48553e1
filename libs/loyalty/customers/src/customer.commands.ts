import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import type { Actor, CommandContext } from '#kernel/aggregate.js';
import { TakenError } from '#kernel/errors.js';
import { takeNextId, withNewId } from '#database/ids.js';
import { ClaimTakenError, type Claim } from '#event-store/port/event-store.js';
import { startStream } from '#event-store/commands/command-plan.js';
import { CommandPipeline } from '#event-store/commands/handle-command.js';
import { PersonalKeys } from '#event-store/personal-keys/personal-keys.js';
import { toStreamName } from '#event-store/read-models/read-models.js';
import { ClaimHolders } from '#stamping/claim-holders.service.js';
import { enrolment, withFreeCode } from '#stamping/customer-card.commands.js';
import { customerCardDetailJson, customerCardJson } from '#stamping/customer-card.dto.js';
import { customerCardReadModel } from '#stamping/customer-card.entity.js';
import { CustomerCardsService } from '#stamping/customer-cards.service.js';
import { TemplatesService } from '#stamping/templates.service.js';
import {
  createCustomer,
  customer,
  movedValues,
  updateCustomer,
  type Customer,
  type CustomerChanges,
  type UniqueValue,
} from './customer.js';
import { sourceOf } from './customer-source.js';
import { customerJson, type CreatedCustomerJson, type CustomerJson } from './customer.dto.js';
import { type CustomerInput } from './customer-input.dto.js';
import { customerReadModel } from './customer.entity.js';
import type { AgreedTexts, CustomerEvent } from './customer.events.js';
import { StorePlaces } from './store-places.service.js';

export class CreateCustomer extends Command<CreatedCustomerJson> {
  constructor(
    readonly context: CommandContext,
    readonly input: CustomerInput,
    /** Null: not enrolled on any card yet. */
    readonly cardId: number | null,
    readonly sendCardLinks: boolean,
    /** Of a form: what the person has agreed to there. */
    readonly agreed: AgreedTexts | null = null,
  ) {
    super();
  }
}

@CommandHandler(CreateCustomer)
export class CreateCustomerHandler implements ICommandHandler<CreateCustomer> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly templates: TemplatesService,
    private readonly keys: PersonalKeys,
    private readonly places: StorePlaces,
    private readonly customerCards: CustomerCardsService,
    private readonly holders: ClaimHolders,
    private readonly pool: Pool,
  ) {}

  async execute(command: CreateCustomer): Promise<CreatedCustomerJson> {
    return unlessTaken(this.holders, command.context, (wanted) =>
      withFreeCode(() =>
        withNewId(this.pool, customerReadModel.table, (id) => this.create(id, command, wanted)),
      ),
    );
  }

  private async create(
    id: number,
    { context: given, input, cardId, sendCardLinks, agreed }: CreateCustomer,
    wanted: WantedClaims,
  ): Promise<CreatedCustomerJson> {
    const { accountId, channel } = given;
    const context = { ...given, actor: actorOf(given, id) };
    const customerCardId =
      cardId === null ? null : await takeNextId(this.pool, customerCardReadModel.table);
    await this.keys.create(id, customerReadModel.table);
    return this.pipeline.handleCommand({
      readModel: customerReadModel,
      id,
      isNew: true,
      context,
      load: async () => ({
        place: await this.places.get(accountId),
        template: cardId === null ? null : await this.templates.find(accountId, cardId),
      }),
      decide: (_state, { place, template }, now) => {
        const card =
          template && customerCardId !== null
            ? enrolment(this.keys, { id: customerCardId, accountId, customerId: id }, template, now)
            : undefined;
        const { marketingConsent, smsConsent, ...personal } = input;
        const events = createCustomer(
          {
            customerId: id,
            accountId,
            source: sourceOf(channel),
            marketingConsent,
            smsConsent,
            sendCardLinks: sendCardLinks && card !== undefined,
            agreed,
            personal,
          },
          { ...place, now },
        );
        const { claims } = movedClaims(this.keys, context, id, undefined, events);
        wanted.claims = claims;
        return {
          events,
          newStreams:
            card && customerCardId !== null
              ? [startStream(customerCardReadModel, customerCardId, card.events)]
              : [],
          claims: [...claims, ...(card?.claims ?? [])],
        };
      },
      respond: ({ state, inputs: { template }, now, findNewState }) => {
        const card = findNewState(customerCardReadModel);
        if (!card || !template) return customerJson(state, []);
        const renderContext = this.customerCards.renderContext(template, now, false);
        return {
          ...customerJson(state, [customerCardJson(card, renderContext)]),
          customer_card: customerCardDetailJson(card, renderContext),
        };
      },
    });
  }
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
    private readonly places: StorePlaces,
    private readonly customerCards: CustomerCardsService,
    private readonly holders: ClaimHolders,
  ) {}

  async execute({ context, id, changes }: UpdateCustomer): Promise<CustomerJson> {
    return unlessTaken(this.holders, context, (wanted) =>
      this.pipeline.handleCommand({
        readModel: customerReadModel,
        id,
        context,
        load: async () => ({
          place: await this.places.get(context.accountId),
          cards: await this.customerCards.ofCustomers([id]),
        }),
        decide: (state, { place }, now) => {
          const events = updateCustomer(state, changes, { ...place, now });
          const moved = movedClaims(this.keys, context, id, state, events);
          wanted.claims = moved.claims;
          return { events, ...moved };
        },
        respond: ({ state, inputs: { cards } }) => customerJson(state, cards.get(id) ?? []),
      }),
    );
  }
}

export const customerHandlers = [CreateCustomerHandler, UpdateCustomerHandler];

/** Whoever signs up acts as the customer that they become. */
function actorOf({ actor }: CommandContext, id: number): Actor {
  return actor.type === 'customer' ? { type: 'customer', id } : actor;
}

/** The claims for a change of a customer: new values are taken, former ones released. */
export function movedClaims(
  keys: PersonalKeys,
  { accountId }: CommandContext,
  id: number,
  before: Customer | undefined,
  events: CustomerEvent[],
): { claims: Claim[]; releases: Claim[] } {
  const stream = toStreamName(customer, id);
  const { taken, released } = movedValues(before, events);
  const claim = ({ kind, value }: UniqueValue) => keys.createClaim(accountId, kind, value, stream);
  return { claims: taken.map(claim), releases: released.map(claim) };
}

/** What the last decision wanted to claim, in the order of e-mail address, phone number and references. */
export type WantedClaims = { claims: Claim[] };

/**
 * Refuses the command if another customer holds what it claims; the kinds of these claims are the names of the fields.
 * @throws TakenError with the holder of the first of them
 */
export async function unlessTaken<R>(
  holders: ClaimHolders,
  { accountId }: CommandContext,
  run: (request: WantedClaims) => Promise<R>,
): Promise<R> {
  const request: WantedClaims = { claims: [] };
  try {
    return await run(request);
  } catch (error) {
    if (!(error instanceof ClaimTakenError)) throw error;
    const id = await holders.find(accountId, request.claims, {
      rows: customerReadModel,
      mergedInto: ({ mergedInto }) => mergedInto?.customerId,
    });
    throw new TakenError(
      Object.fromEntries(
        error.kinds.map((kind) => [kind, ['is already used by another customer']]),
      ),
      'Look the customer up with the search, and use the one that exists.',
      id === undefined ? undefined : { type: 'customer', id },
    );
  }
}
