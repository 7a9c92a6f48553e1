import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { InvalidFieldsError, NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { findPictureType } from '#platform/http/body-kinds.js';
import type { CustomerLanguage } from '#translations/translations.js';
import { PastStates } from '#platform/event-store/log/past-states.service.js';
import { card as cardAggregate } from '#loyalty/cards/card.js';
import { CreateCard, SetStripImage, UpdateCard } from '#loyalty/cards/card.commands.js';
import { STRIP, UploadedPictures } from '#loyalty/cards/uploaded-pictures.service.js';
import { CreateReward, DeleteReward, UpdateReward } from '#loyalty/rewards/reward.commands.js';
import { reward as rewardAggregate, type Reward } from '#loyalty/rewards/reward.js';
import { RewardsService } from '#loyalty/rewards/rewards.service.js';
import { ISSUES } from '#translations/issues.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { toDesignForm } from './design-form.dto.js';
import { restoreRewards } from './design-form.js';
import type { DesignedCard } from './designed-card.js';
import { parseDesign, type ParsedDesign, type RewardInput } from './parsed-design.dto.js';

export type StoreLook = CustomerLanguage & { name: string; timeZone: string };

/** Saves what a design form says. */
export type DesignSaving = {
  context: CommandContext;
  design: ParsedDesign;
  picture: Buffer | undefined;
};

/** Reports that somebody has changed the card since the form was opened. */
export class ChangedMeanwhileError extends Error {}

/** Reports that the card is saved, but something of its rewards is not. */
export class PartlySavedError extends Error {
  constructor(
    readonly cardId: number,
    readonly rejection: RejectedError,
  ) {
    super(rejection.message);
  }
}

const FIND_CARD = {
  name: 'design_card',
  text: `
    select c.state as card,
      (select count(*) from customer_cards k
        where k.card_id = c.id and k.merged_into is null
          and not exists (select from es.erasures e
            where e.subject_id = k.customer_id and e.account_id = c.account_id)) as "holderCount",
      coalesce((select jsonb_agg(w.state) from rewards w
        where w.card_id = c.id and w.deleted_at is null), '[]') as rewards
    from cards c where c.id = $1 and c.account_id = $2`,
};

const FIND_STORE = {
  name: 'design_store',
  text: `select display_name as name, locale, address_form as "addressForm",
         time_zone as "timeZone" from accounts where id = $1`,
};

/** Loads and saves cards with their rewards, as the designer shows them. */
@Injectable()
export class CardDesigns {
  constructor(
    private readonly pool: Pool,
    private readonly commands: FormCommands,
    private readonly pictures: UploadedPictures,
    private readonly rewards: RewardsService,
    private readonly pastStates: PastStates,
  ) {}

  /** Finds a card with its active rewards, cheapest first. @throws NotFoundError */
  async get(accountId: number, id: number): Promise<DesignedCard> {
    const [row] = await query<DesignedCard>(this.pool, { ...FIND_CARD, values: [id, accountId] });
    if (!row) throw new NotFoundError('Card');
    return { ...row, rewards: sortRewards(row.rewards) };
  }

  /** @throws NotFoundError */
  async getStore(accountId: number): Promise<StoreLook> {
    const [store] = await query<StoreLook>(this.pool, { ...FIND_STORE, values: [accountId] });
    if (!store) throw new NotFoundError('Store');
    return store;
  }

  /** Tells whether the store has uploaded this picture. */
  async hasPicture(accountId: number, hash: string): Promise<boolean> {
    const rows = await query(this.pool, {
      name: 'design_picture',
      text: 'select 1 from pictures where hash = $1 and account_id = $2',
      values: [hash, accountId],
    });
    return rows.length > 0;
  }

  /** Creates a card with its rewards. @returns its id @throws RejectedError, PartlySavedError */
  async create(saving: DesignSaving): Promise<number> {
    const { context, design } = saving;
    // First, because a card without its picture is half a card.
    const picture = await this.storePicture(saving);
    const { id } = await this.commands.execute(new CreateCard(context, design.attributes));
    await this.saveRest(saving, id, picture, []);
    return id;
  }

  /**
   * Updates a card and its rewards.
   * @param openedUpdatedAt when the card that the form was filled with was last changed
   * @throws RejectedError, NotFoundError, ChangedMeanwhileError, PartlySavedError
   */
  async update(
    saving: DesignSaving,
    { card, rewards }: DesignedCard,
    openedUpdatedAt: string = card.updatedAt,
  ): Promise<void> {
    const { context, design } = saving;
    const assertUnchanged = () => {
      if (openedUpdatedAt !== card.updatedAt) throw new ChangedMeanwhileError();
    };
    const picture = await this.storePicture(saving);
    const command = new UpdateCard(context, card.id, design.attributes);
    await this.commands.execute(command, '', assertUnchanged);
    await this.saveRest(saving, card.id, picture, rewards);
  }

  /**
   * Gives a card and its rewards the values back that they had at a time.
   * @param openedUpdatedAt when the card was last changed, as the person has seen it
   * @throws what `update` throws, and InvalidFieldsError when the picture is gone
   */
  async restore(
    context: CommandContext,
    id: number,
    { time, openedUpdatedAt }: { time: Date; openedUpdatedAt: string | undefined },
  ): Promise<void> {
    const { accountId } = context;
    const [designed, { timeZone }] = await Promise.all([
      this.get(accountId, id),
      this.getStore(accountId),
    ]);
    const past = await this.getPast(id, time);
    const { stripType, stripPicture } = past.card;
    const picture = stripType === 'image' ? stripPicture : null;
    // Before anything is changed: what no card shows may be deleted.
    if (picture !== null && !(await this.pictures.renew(accountId, picture)))
      throw new InvalidFieldsError({ [STRIP.field]: [ISSUES.logo_missing] });
    const form = toDesignForm(past.card, past.rewards, timeZone);
    const rewards = restoreRewards(form.rewards, designed.rewards);
    const design = parseDesign({ ...form, rewards }, { timeZone, previous: past.card });
    await this.update({ context, design, picture: undefined }, designed, openedUpdatedAt);
    if (picture !== null) await this.commands.execute(new SetStripImage(context, id, picture));
  }

  /** Finds a card with its active rewards, as they were. The caller may see the card. @throws NotFoundError */
  private async getPast(id: number, time: Date): Promise<Pick<DesignedCard, 'card' | 'rewards'>> {
    const past = await this.pastStates.toMoment(time);
    const card = await this.pastStates.projectOne(cardAggregate, id, past);
    if (!card) throw new NotFoundError('Card');
    const rows = await query<{ id: number }>(this.pool, {
      name: 'design_reward_ids',
      text: 'select id from rewards where card_id = $1 order by id',
      values: [id],
    });
    const ids = rows.map((row) => row.id);
    const rewards = await this.pastStates.projectAll(rewardAggregate, ids, past);
    return { card, rewards: sortRewards(rewards.filter(({ deletedAt }) => deletedAt === null)) };
  }

  private async storePicture({ context, picture }: DesignSaving): Promise<string | null> {
    if (!picture) return null;
    const type = findPictureType(picture) ?? 'image/png';
    return this.pictures.store(context.accountId, type, picture);
  }

  private async saveRest(
    saving: DesignSaving,
    cardId: number,
    picture: string | null,
    existing: Reward[],
  ): Promise<void> {
    const { context, design } = saving;
    try {
      if (picture) await this.commands.execute(new SetStripImage(context, cardId, picture));
      for (const id of design.removedIds) {
        if (existing.some((reward) => reward.id === id)) await this.removeReward(context, id);
      }
      for (const reward of design.rewards) await this.saveReward(saving, cardId, reward, existing);
    } catch (error) {
      if (error instanceof RejectedError) throw new PartlySavedError(cardId, error);
      throw error;
    }
  }

  /** Deletes a reward, or deactivates one that was redeemed, which the history refers to (REWARD-24). */
  private async removeReward(context: CommandContext, id: number): Promise<void> {
    if (await this.rewards.wasRedeemed(id)) {
      await this.commands.execute(new UpdateReward(context, id, { active: false }), `${id}`);
    } else {
      await this.commands.execute(new DeleteReward(context, id), `${id}`);
    }
  }

  private async saveReward(
    saving: DesignSaving,
    cardId: number,
    { id, row, name, stampsRequired, description }: RewardInput,
    existing: Reward[],
  ): Promise<void> {
    const { context } = saving;
    const attributes = { name, stampsRequired, description };
    if (id !== null && existing.some((reward) => reward.id === id)) {
      await this.commands.execute(new UpdateReward(context, id, attributes), `${id}`);
      return;
    }
    const reward = { cardId, ...attributes, position: null, active: true };
    await this.commands.execute(new CreateReward(context, reward), `${row}`);
  }
}

/** Returns the active rewards, cheapest first. */
function sortRewards(rewards: Reward[]): Reward[] {
  return rewards
    .filter(({ active }) => active)
    .sort((a, b) => a.stampsRequired - b.stampsRequired || a.id - b.id);
}
