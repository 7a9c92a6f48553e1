import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { randomInt, randomUUID } from 'node:crypto';
import { DataSource } from 'typeorm';
import type { CommandContext } from '#kernel/aggregate.js';
import { RejectedError } from '#kernel/errors.js';
import { nextId } from '#database/ids.js';
import { ClaimTakenError, type Claim } from '#event-store/event-store.js';
import { CommandPipeline, start, type Start } from '#event-store/handle-command.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { streamOf } from '#event-store/rows.js';
import { customerCard, issue, type Template } from '#stamping/customer-card.js';
import { customerCardDetailJson, customerCardJson } from '#stamping/customer-card.dto.js';
import { customerCardRows } from '#stamping/customer-card.entity.js';
import { CustomerCardsService } from '#stamping/customer-cards.service.js';
import { TemplatesService } from '#stamping/templates.service.js';
import {
  createCustomer,
  customer,
  foldCase,
  mergeMetadata,
  refuseEnrolment,
  upsertReferences,
} from './customer.js';
import { customerJson, type CreatedCustomerJson, type CustomerInput } from './customer.dto.js';
import { customerRows } from './customer.entity.js';

const CODE_ALPHABET = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ';
const CODE_TRIES = 5;

export class CreateCustomer extends Command<CreatedCustomerJson> {
  constructor(
    readonly context: CommandContext,
    readonly input: CustomerInput,
    /** Null: not enrolled on any card yet. */
    readonly cardId: number | null,
    readonly sendCardLinks: boolean,
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
    private readonly customerCards: CustomerCardsService,
    private readonly source: DataSource,
  ) {}

  async execute(command: CreateCustomer): Promise<CreatedCustomerJson> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.create(command);
      } catch (error) {
        if (!(error instanceof ClaimTakenError)) throw error;
        if (error.kinds.includes('card_code') && tries < CODE_TRIES) continue;
        throw alreadyUsed(error.kinds);
      }
    }
  }

  private async create({
    context,
    input,
    cardId,
    sendCardLinks,
  }: CreateCustomer): Promise<CreatedCustomerJson> {
    const { accountId } = context;
    const id = await nextId(this.source, 'customers_id');
    const customerCardId = cardId === null ? null : await nextId(this.source, 'customer_cards_id');
    await this.keys.create(id);
    return this.pipeline.handleCommand({
      rows: customerRows,
      id,
      context,
      given: async () => (cardId === null ? null : this.templates.find(accountId, cardId)),
      decide: (_state, template, now) => {
        if (template) refuseEnrolment(template, now);
        const { marketingConsent, smsConsent, externalReferences, ...personal } = input;
        const events = createCustomer({
          customerId: id,
          accountId,
          source: 'api',
          marketingConsent,
          smsConsent,
          sendCardLinks: sendCardLinks && template !== null,
          personal: {
            ...personal,
            metadata: mergeMetadata({}, personal.metadata),
            externalReferences: upsertReferences([], externalReferences, now),
          },
        });
        const enrolment =
          template && customerCardId !== null
            ? this.enrol(context, id, customerCardId, template)
            : { starts: [], claims: [] };
        return {
          events,
          starts: enrolment.starts,
          claims: [...this.contactClaims(context, id, input), ...enrolment.claims],
        };
      },
      answer: ({ state, given: template, now, started }) => {
        const card = started(customerCardRows);
        if (!card || !template) return customerJson(state, []);
        const showing = this.customerCards.showing(template, now);
        return {
          ...customerJson(state, [customerCardJson(card, showing)]),
          customer_card: customerCardDetailJson(card, showing),
        };
      },
    });
  }

  private enrol(
    { accountId }: CommandContext,
    customerId: number,
    id: number,
    template: Template,
  ): { starts: Start[]; claims: Claim[] } {
    const code = Array.from({ length: 8 }, () =>
      CODE_ALPHABET.charAt(randomInt(CODE_ALPHABET.length)),
    ).join('');
    const events = issue({ id, accountId, customerId, uuid: randomUUID(), code }, template);
    const stream = streamOf(customerCard, id);
    return {
      starts: [start(customerCardRows, id, events)],
      claims: [
        this.keys.claim(accountId, 'card_code', code, stream),
        this.keys.claim(accountId, 'enrolment', `${customerId} ${template.cardId}`, stream),
      ],
    };
  }

  private contactClaims({ accountId }: CommandContext, id: number, input: CustomerInput): Claim[] {
    const stream = streamOf(customer, id);
    const claim = (kind: string, value: string) => this.keys.claim(accountId, kind, value, stream);
    const references = new Set(
      input.externalReferences.map(({ source, externalId }) =>
        JSON.stringify([source, externalId]),
      ),
    );
    return [
      ...(input.email === null ? [] : [claim('email', foldCase(input.email))]),
      ...(input.phone === null ? [] : [claim('phone', input.phone)]),
      ...[...references].map((reference) => claim('external_references', reference)),
    ];
  }
}

export const customerHandlers = [CreateCustomerHandler];

/** The claims' kinds are the names of the fields that they guard. */
function alreadyUsed(kinds: string[]): RejectedError {
  return new RejectedError(
    Object.fromEntries(kinds.map((kind) => [kind, ['is already used by another customer']])),
    'validation_failed',
    'Look the customer up with the search, and use the one that exists.',
  );
}
