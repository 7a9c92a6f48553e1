import { Command, CommandBus, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { getNow } from '#platform/kernel/clock.js';
import { RejectedError, TakenError, UnavailableError } from '#platform/kernel/errors.js';
import { RETRY, retryUntil } from '#platform/kernel/retry-until.js';
import type { Claim } from '#platform/event-store/port/event-store.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import { ClaimHolders } from '#loyalty/stamping/claim-holders.service.js';
import { EnrolCustomer } from '#loyalty/stamping/customer-card.commands.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import { createStampingError, type STAMPING_ERRORS } from '#loyalty/stamping/stamping-errors.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import { CreateCustomer } from './customer.commands.js';
import { createCustomer, listUniqueValues, type UniqueCustomerValue } from './customer.js';
import { findCustomerSource } from './customer-source.js';
import type { CreatedCustomerJson } from './customer.dto.js';
import { customerReadModel } from './customer.entity.js';
import { CustomersService } from './customers.service.js';
import { StoreRegions } from './store-regions.service.js';
import { ISSUES } from '#translations/issues.js';

const RETRY_MS = 25;
const RETRY_TIMEOUT_MS = 5_000;
/** The customer was merged or erased after they had been found. */
const GONE = ['customer_merged', 'customer_erased'] satisfies (keyof typeof STAMPING_ERRORS)[];

type CustomerResult = { customer: CreatedCustomerJson; isNew: boolean };

/** Creates the customer, unless one of their unique values belongs to somebody already (CUST-68). */
export class FindOrCreateCustomer extends Command<CustomerResult> {
  constructor(readonly creation: CreateCustomer) {
    super();
  }
}

/**
 * Looks for the customer, creates them, and looks again if another request was faster. The response to a customer who
 * was there is stored under an Idempotency-Key after an enrolment and not with it: a repetition finds the same one.
 */
@CommandHandler(FindOrCreateCustomer)
export class FindOrCreateCustomerHandler implements ICommandHandler<FindOrCreateCustomer> {
  constructor(
    private readonly commands: CommandBus,
    private readonly customers: CustomersService,
    private readonly customerCards: CustomerCardsService,
    private readonly templates: TemplatesService,
    private readonly regions: StoreRegions,
    private readonly keys: PersonalKeys,
    private readonly readModels: ReadModels,
    private readonly holders: ClaimHolders,
  ) {}

  async execute({ creation }: FindOrCreateCustomer): Promise<CustomerResult> {
    const { context, cardId } = creation;
    if (cardId !== null) await this.templates.get(context.accountId, cardId);
    const values = await this.readValues(creation);
    return retryUntil(
      { withinMs: RETRY_TIMEOUT_MS, delayMs: RETRY_MS, isRetriable },
      async () => {
        const id = await this.findHolder(context.accountId, values);
        if (id === RETRY) return RETRY;
        if (id === undefined) {
          return { customer: await this.commands.execute(creation), isNew: true };
        }
        const customer = await this.respondWithExisting(creation, id);
        return customer === RETRY ? RETRY : { customer, isNew: false };
      },
      (cause) => new UnavailableError('This customer is being changed right now', { cause }),
    );
  }

  /** Reads the unique values that the new customer would have. @throws RejectedError if there could be none */
  private async readValues({
    context: { accountId, channel },
    input: { marketingConsent, smsConsent, ...personal },
    agreed,
  }: CreateCustomer): Promise<UniqueCustomerValue[]> {
    const region = await this.regions.get(accountId);
    const data = { accountId, source: findCustomerSource(channel), marketingConsent, smsConsent };
    return createCustomer(
      { ...data, customerId: 0, sendCardLinks: false, agreed, signup: null, personal },
      { ...region, now: getNow() },
    ).flatMap((event) =>
      event.type === 'CustomerCreated' && event.data.personal
        ? listUniqueValues(event.data.personal)
        : [],
    );
  }

  /**
   * Finds the one customer who has these values, or goes on for whoever has them.
   * @returns undefined when nobody has any; RETRY while a holder of a claim does not have its value: their change is not
   *   recorded yet
   * @throws RejectedError when several customers have them
   */
  private async findHolder(
    accountId: number,
    values: UniqueCustomerValue[],
  ): Promise<number | typeof RETRY | undefined> {
    const claims = values.map(({ kind, value }): Claim =>
      this.keys.createClaim(accountId, kind, value, ''),
    );
    const holders = await this.holders.list(accountId, claims, customerReadModel);
    const ids = new Set<number>();
    for (const { id, places } of holders) {
      const loaded = await this.readModels.loadCurrent(customerReadModel, id);
      const own = loaded ? listUniqueValues(loaded.state).map(toKey) : [];
      const isRecorded = places.every((place) => {
        const value = values[place];
        return value !== undefined && own.includes(toKey(value));
      });
      if (!isRecorded) return RETRY;
      ids.add(
        await this.holders.findSurvivor(
          customerReadModel,
          id,
          ({ mergedInto }) => mergedInto?.customerId,
        ),
      );
    }
    if (ids.size > 1) throw createAmbiguousError([...ids]);
    const [id] = ids;
    return id;
  }

  /**
   * Enrols the customer if they have no such card.
   * @returns RETRY when they have been merged or erased meanwhile
   */
  private async respondWithExisting(
    { context, cardId }: CreateCustomer,
    id: number,
  ): Promise<CreatedCustomerJson | typeof RETRY> {
    const { accountId, keyed, ...origin } = context;
    if (keyed) keyed.subjectId = id;
    const existing = await this.customers.get(accountId, id);
    if (existing.erased_at !== null || existing.merged_into !== null) return RETRY;
    if (cardId === null) return existing;
    const card = existing.customer_cards.find(({ card_id }) => card_id === cardId);
    if (card) {
      const path = { customerId: id, id: card.id };
      return { ...existing, customer_card: await this.customerCards.get(accountId, path) };
    }
    const enrolment = new EnrolCustomer({ accountId, ...origin }, id, cardId);
    return addCard(existing, await this.commands.execute(enrolment));
  }
}

/** Adds a new card to the customer without reading them again: nothing may fail after the enrolment (ERR-21). */
function addCard(
  customer: CreatedCustomerJson,
  customer_card: CustomerCardDetailJson,
): CreatedCustomerJson {
  // The fields that only the detail shape has.
  const {
    customer_id: _customerId,
    account_id: _accountId,
    available_rewards: _rewards,
    ...listItem
  } = customer_card;
  return {
    ...customer,
    stamp_count: customer.stamp_count + listItem.stamps_count,
    customer_cards: [...customer.customer_cards, listItem],
    customer_card,
  };
}

/** Tells whether an error means that another request was faster, or that the customer has just gone. */
function isRetriable(error: unknown): boolean {
  if (error instanceof TakenError) return true;
  return error instanceof RejectedError && (GONE as string[]).includes(error.code);
}

function toKey({ kind, value }: UniqueCustomerValue): string {
  return `${kind} ${value}`;
}

function createAmbiguousError(ids: number[]): RejectedError {
  const names = ids.sort((a, b) => a - b).join(' and ');
  return createStampingError(
    { base: [ISSUES.values_of_different_customers({ ids: names })] },
    'ambiguous',
    'Merge them if they are one person, or send only the values of one of them.',
  );
}
