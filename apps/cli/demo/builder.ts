import { randomUUID } from 'node:crypto';
import type { INestApplicationContext } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { Actor, CommandContext } from '#platform/kernel/aggregate.js';
import { readFields } from '#platform/http/dtos.js';
import { ArchiveCard, CreateCard } from '#loyalty/cards/card.commands.js';
import { CreateCardDto, toCardAttributes } from '#loyalty/cards/card.dto.js';
import { CreateCustomer } from '#loyalty/customers/customer.commands.js';
import { CustomerCreationDto, toCustomerInput } from '#loyalty/customers/customer-input.dto.js';
import { EraseCustomer } from '#loyalty/customers/erasing.commands.js';
import { MergeCustomers } from '#loyalty/customers/merging.commands.js';
import { CreateLocation } from '#loyalty/locations/location.commands.js';
import { CreateLocationDto, toLocationAttributes } from '#loyalty/locations/location.dto.js';
import { CreatePoster } from '#loyalty/posters/poster.commands.js';
import { CreatePosterDto, toPosterAttributes } from '#loyalty/posters/poster.dto.js';
import { CreateReward } from '#loyalty/rewards/reward.commands.js';
import { CreateRewardDto, toRewardAttributes } from '#loyalty/rewards/reward.dto.js';
import { AdjustCustomerCard, ReverseCardEvent } from '#loyalty/stamping/corrections.commands.js';
import {
  EnrolCustomer,
  RedeemReward,
  StampCustomerCard,
} from '#loyalty/stamping/customer-card.commands.js';
import {
  CreateAnnouncementDto,
  toAnnouncementAttributes,
} from '#outbound/campaigns/announcement.dto.js';
import { CreateCampaign, SendAnnouncement } from '#outbound/campaigns/campaign.commands.js';
import { CreateMessageRuleDto, toRuleAttributes } from '#outbound/campaigns/message-rule.dto.js';
import {
  ANNOUNCEMENT,
  CARDS,
  LOCATIONS,
  POSTERS,
  RULE,
  type CardKey,
  type LocationKey,
  type StaffKey,
} from './shop.js';
import type { Step, Year } from './year.js';

const BATCH_SIZE = 24;
/** What pages show first is recorded one by one, in the order in which it happened. */
const LATEST_COUNT = 10 * BATCH_SIZE;
const SIGNUP: Actor = { type: 'customer', id: 0, name: 'signup' };

type RunAt = <R>(at: number, work: () => Promise<R>) => Promise<R>;
type DemoCustomer = { id: number; cards: Map<CardKey, DemoCard> };
type DemoCard = { id: number; lastEventId: string };

/** Does in a store what a year says, each thing as if it were done at its time. */
export class ShopBuilder {
  private readonly bus: CommandBus;
  private readonly cards = new Map<CardKey, { id: number; rewards: number[] }>();
  private readonly locations = new Map<LocationKey, number>();
  private readonly customers = new Map<number, DemoCustomer>();

  constructor(
    app: INestApplicationContext,
    private readonly accountId: number,
    private readonly actors: ReadonlyMap<StaffKey, Actor>,
    private readonly runAt: RunAt,
  ) {
    this.bus = app.get(CommandBus);
  }

  /** Creates locations, cards, rewards and posters. */
  async furnish(at: number): Promise<void> {
    await this.runAt(at, async () => {
      const context = this.createContext('mira', 'owner');
      for (const { key, name, address, pin } of LOCATIONS) {
        const input = toLocationAttributes(readFields(CreateLocationDto, { name, address, pin }));
        const { id } = await this.bus.execute(new CreateLocation(context, input));
        this.locations.set(key, id);
      }
      for (const [key, { card, rewards }] of Object.entries(CARDS)) {
        const input = toCardAttributes(readFields(CreateCardDto, card));
        const { id } = await this.bus.execute(new CreateCard(context, input));
        const rewardIds: number[] = [];
        for (const reward of rewards) {
          const dto = readFields(CreateRewardDto, { card_id: id, ...reward });
          const command = new CreateReward(context, toRewardAttributes(dto));
          rewardIds.push((await this.bus.execute(command)).id);
        }
        this.cards.set(key as CardKey, { id, rewards: rewardIds });
      }
      for (const { card, ...poster } of POSTERS) {
        const { id } = this.getCard(card);
        const dto = readFields(CreatePosterDto, { card_id: id, ...poster });
        await this.bus.execute(new CreatePoster(context, toPosterAttributes(dto)));
      }
    });
  }

  /** @param onProgress gets the part that is done, from 0 to 1 */
  async play(
    { people, steps, archivesSummerAt }: Year,
    onProgress: (part: number) => void,
  ): Promise<void> {
    const context = this.createContext('mira', 'owner');
    const { id } = this.getCard('summer');
    let isArchived = false;
    const archiveSummer = async () => {
      await this.runAt(archivesSummerAt, () => this.bus.execute(new ArchiveCard(context, id)));
      isArchived = true;
    };
    for (let at = 0; at < steps.length; at += BATCH_SIZE) {
      const batch = steps.slice(at, at + BATCH_SIZE);
      if (!isArchived && (batch[0]?.at ?? 0) >= archivesSummerAt) await archiveSummer();
      // What is about two customers, or their last, waits for everything before it.
      const isAlone =
        at >= steps.length - LATEST_COUNT ||
        batch.some(({ kind }) => kind === 'merge' || kind === 'erase');
      const groups = new Map<number, Step[]>();
      for (const step of batch) {
        const key = isAlone ? 0 : step.customer;
        groups.set(key, [...(groups.get(key) ?? []), step]);
      }
      await Promise.all(
        [...groups.values()].map(async (group) => {
          for (const step of group) {
            await this.runAt(step.at, () => this.take(step, people));
          }
        }),
      );
      onProgress((at + batch.length) / steps.length);
    }
    if (!isArchived) await archiveSummer();
  }

  /** Turns on a rule, and sends an announcement to whoever can be reached by what is set up here. */
  async announce(): Promise<void> {
    const context = this.createContext('mira', 'owner');
    const rule = toRuleAttributes(readFields(CreateMessageRuleDto, RULE));
    await this.bus.execute(new CreateCampaign(context, { kind: 'rule', ...rule }));
    const content = toAnnouncementAttributes(readFields(CreateAnnouncementDto, ANNOUNCEMENT));
    const { id } = await this.bus.execute(
      new CreateCampaign(context, { kind: 'announcement', state: 'draft', ...content }),
    );
    await this.bus.execute(new SendAnnouncement(context, id, null));
  }

  private async take(step: Step, people: Year['people']): Promise<void> {
    if (step.kind === 'join') return this.join(step, people[step.customer] ?? {});
    const customer = this.getCustomer(step.customer);
    if (step.kind === 'merge') {
      const pair = { survivorId: customer.id, otherId: this.getCustomer(step.other).id };
      await this.bus.execute(new MergeCustomers(this.createContext('mira', 'owner'), pair));
    } else if (step.kind === 'erase') {
      await this.bus.execute(new EraseCustomer(this.createContext('mira', 'owner'), customer.id));
    } else if (step.kind === 'enrol') {
      const { id: cardId } = this.getCard(step.card);
      const context = this.createContext(step.by, 'owner');
      const { id } = await this.bus.execute(new EnrolCustomer(context, customer.id, cardId));
      customer.cards.set(step.card, { id, lastEventId: '' });
    } else {
      await this.act(step, customer);
    }
  }

  private async join(
    { customer, card, by, sendsLink }: Extract<Step, { kind: 'join' }>,
    person: object,
  ): Promise<void> {
    const isSelf = by === 'poster';
    const context = isSelf
      ? { ...this.createContext('mira', 'poster'), actor: SIGNUP }
      : this.createContext(by, 'owner');
    const input = toCustomerInput(readFields(CustomerCreationDto, { ...person }));
    const created = await this.bus.execute(
      new CreateCustomer(context, input, this.getCard(card).id, sendsLink),
    );
    if (!created.customer_card) throw new Error('whoever joins gets a card');
    const cards = new Map([[card, { id: created.customer_card.id, lastEventId: '' }]]);
    this.customers.set(customer, { id: created.id, cards });
  }

  private async act(
    step: Extract<Step, { kind: 'stamp' | 'redeem' | 'reverse' | 'adjust' }>,
    customer: DemoCustomer,
  ): Promise<void> {
    const card = customer.cards.get(step.card);
    if (!card) throw new Error('nobody is stamped on a card that they do not have');
    const path = { customerId: customer.id, id: card.id };
    const context = this.createContext(step.by, 'owner');
    if (step.kind === 'reverse') {
      const { lastEventId, id } = card;
      await this.bus.execute(
        new ReverseCardEvent(context, { ...path, id }, lastEventId, step.reason),
      );
      return;
    }
    if (step.kind === 'adjust') {
      const correction = { stamps: step.stamps, reason: step.reason, externalRef: null };
      await this.bus.execute(new AdjustCustomerCard(context, path, correction));
      return;
    }
    const action = {
      source: step.by === 'till' ? ('api' as const) : ('pos' as const),
      occurredAt: undefined,
      locationId: this.locations.get(step.location) ?? null,
      staffRef: step.by === 'till' ? 'Kasse 2' : null,
      silent: false,
      personal: null,
    };
    if (step.kind === 'stamp') {
      const { stamps, receipt: externalRef } = step;
      const command = new StampCustomerCard(context, path, { ...action, stamps, externalRef });
      card.lastEventId = (await this.bus.execute(command)).body.event_id ?? '';
      return;
    }
    const rewardId = this.getCard(step.card).rewards[step.reward] ?? 0;
    await this.bus.execute(
      new RedeemReward(context, path, { ...action, rewardId, externalRef: null }),
    );
  }

  private createContext(by: StaffKey, channel: string): CommandContext {
    const actor = this.actors.get(by);
    if (!actor) throw new Error(`${by} does not work here`);
    return { accountId: this.accountId, actor, channel, requestId: randomUUID() };
  }

  private getCard(key: CardKey): { id: number; rewards: number[] } {
    const card = this.cards.get(key);
    if (!card) throw new Error(`the shop has no card ${key}`);
    return card;
  }

  private getCustomer(place: number): DemoCustomer {
    const customer = this.customers.get(place);
    if (!customer) throw new Error(`customer ${place} has not joined yet`);
    return customer;
  }
}
