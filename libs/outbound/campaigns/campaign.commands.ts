import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import { getNow } from '#platform/kernel/clock.js';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { RejectedError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { IdTakenError, withNewId } from '#platform/database/ids.js';
import { LOCKS } from '#platform/database/locks.js';
import {
  AuditedWrites,
  type AuditedTransaction,
} from '#platform/event-store/commands/audited-writes.service.js';
import {
  CreateCommand,
  defineHandler,
  RecordCommand,
  UpdateCommand,
} from '#platform/event-store/commands/record-commands.js';
import { checkCap } from '#platform/event-store/port/caps.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import {
  cancelAnnouncement,
  changeCampaign,
  createCampaign,
  deleteRule,
  scheduleAnnouncement,
  type Announcement,
  type Campaign,
  type CampaignAttributes,
  type CampaignChanges,
  type CampaignKind,
  type Decision,
} from './campaign.js';
import { toCampaignJson, type CampaignJson } from './campaign.dto.js';
import { CAMPAIGN_CAPS, campaignTable, CampaignsService } from './campaigns.service.js';
import { NO_MESSAGES } from './message-recipient.js';
import { ISSUES } from '#translations/issues.js';

/** Unfinished announcements and rules of a store, each. */
const MAX_CAMPAIGNS = 20;
/** Announcements of a store that begin in 24 hours. */
const MAX_PER_DAY = 10;

/** What the entries of the audit log are called, and the property with the id. */
const ENTRIES = {
  announcement: {
    created: 'announcement.created',
    updated: 'announcement.updated',
    id: 'announcement_id',
  },
  rule: {
    created: 'message_rule.created',
    updated: 'message_rule.updated',
    id: 'message_rule_id',
  },
} satisfies Record<CampaignKind, object>;

const INSERT = `insert into campaigns (kind, id, account_id, state, title, text, channels, trigger, created_at, updated_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9) on conflict do nothing returning id`;

/** Whoever addresses or checks it with its former content has lost the lease, and begins anew. */
const UPDATE = `update campaigns
  set checked_tie = case when trigger -> 'threshold' is not distinct from $7::jsonb -> 'threshold' then checked_tie end,
    state = $3, title = $4, text = $5, channels = $6, trigger = $7, send_at = $8, actor = $9, updated_at = $10,
    finished_at = $11, due_at = case $3 when 'scheduled' then $8 when 'enabled' then now() end, attempts = 0, process = null
  where kind = $1 and id = $2`;

/** What happens from now on counts: the last entry of the history, and the time. */
const START = `update campaigns
  set checked_seq = coalesce((select max(seq) from history), -1), checked_until = now(), checked_tie = null, due_at = now()
  where kind = $1 and id = $2`;

/** Cancels what nobody is about to send of an announcement. */
const CANCEL_MESSAGES = `update outgoing_messages
  set state = 'skipped', reason = 'cancelled', due_at = null, finished_at = now(), counted_at = null
  where announcement_id = $1 and state = 'queued' and process is null`;

/** Writes campaigns, each change with its entry of the audit log. */
@Injectable()
export class CampaignWrites {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly campaigns: CampaignsService,
    private readonly templates: TemplatesService,
    private readonly pool: Pool,
  ) {}

  /** @throws NotFoundError for a card of another store @throws InvalidFieldsError, CapReachedError */
  async create<K extends CampaignKind>(
    context: CommandContext,
    attributes: NewCampaign<K>,
  ): Promise<CampaignJson[K]> {
    const { accountId } = context;
    const { kind } = attributes;
    await this.assertCardExists(accountId, attributes.trigger.cardId);
    const now = getNow();
    return withNewId(this.pool, campaignTable.table, (id) => {
      const decision = createCampaign<K>({ ...attributes, id, accountId }, now);
      return this.writes.write(context, async (transaction) => {
        const { manager } = transaction;
        const cap = { kind: CAMPAIGN_CAPS[kind], owner: accountId, id, max: MAX_CAMPAIGNS };
        await checkCap(manager, cap);
        const isNew = await insert(manager, decision.campaign);
        if (isNew) await audit(transaction, ENTRIES[kind].created, decision);
        else if (!transaction.isRepeated) throw new IdTakenError(campaignTable.table, id);
        return toCampaignJson(decision.campaign, NO_MESSAGES);
      });
    });
  }

  /** @throws NotFoundError, RejectedError, InvalidFieldsError */
  async update<K extends CampaignKind>(
    context: CommandContext,
    kind: K,
    id: number,
    changes: CampaignChanges<K>,
  ): Promise<CampaignJson[K]> {
    await this.assertCardExists(context.accountId, changes.trigger?.cardId);
    const { updated } = ENTRIES[kind];
    return this.change(context, kind, id, updated, (current) => changeCampaign(current, changes));
  }

  /**
   * Writes what a decision makes of a campaign.
   * @param type of the entry of the audit log
   * @param decide in the transaction that locks it; undefined: nothing changes
   */
  async change<K extends CampaignKind>(
    context: CommandContext,
    kind: K,
    id: number,
    type: string,
    decide: (
      current: Campaign<K>,
      transaction: AuditedTransaction,
      now: Date,
    ) => Decision<K> | undefined | Promise<Decision<K> | undefined>,
  ): Promise<CampaignJson[K]> {
    const { accountId } = context;
    const counts = await this.campaigns.count(await this.campaigns.find(kind, accountId, id));
    return this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      const current = await this.campaigns.lock(manager, kind, accountId, id);
      const now = getNow();
      const decision = await decide(current, transaction, now);
      if (decision === undefined) return toCampaignJson(current, counts);
      const campaign = { ...decision.campaign, updatedAt: now };
      await update(manager, campaign, current);
      await audit(transaction, type, decision);
      return toCampaignJson<K>(campaign, counts);
    });
  }

  private async assertCardExists(accountId: number, cardId: number | null = null): Promise<void> {
    if (cardId !== null) await this.templates.get(accountId, cardId);
  }
}

type NewCampaign<K extends CampaignKind> = CampaignAttributes<K> & { kind: K };

export class CreateCampaign<K extends CampaignKind> extends CreateCommand<
  NewCampaign<K>,
  CampaignJson[K]
> {}

export class UpdateCampaign<K extends CampaignKind> extends UpdateCommand<
  CampaignChanges<K>,
  CampaignJson[K]
> {
  constructor(
    context: CommandContext,
    readonly kind: K,
    id: number,
    changes: CampaignChanges<K>,
  ) {
    super(context, id, changes);
  }
}

export class SendAnnouncement extends RecordCommand<CampaignJson['announcement']> {
  constructor(
    context: CommandContext,
    id: number,
    /** Null: now. */
    readonly sendAt: Date | null,
  ) {
    super(context, id);
  }
}

export class CancelAnnouncement extends RecordCommand<CampaignJson['announcement']> {}
export class DeleteRule extends RecordCommand<void> {}

export const campaignHandlers = [
  defineHandler(
    CreateCampaign,
    [CampaignWrites],
    ({ context, attributes }: CreateCampaign<CampaignKind>, _, writes) =>
      writes.create(context, attributes),
  ),
  defineHandler(
    UpdateCampaign,
    [CampaignWrites],
    ({ context, kind, id, changes }: UpdateCampaign<CampaignKind>, _, writes) =>
      writes.update(context, kind, id, changes),
  ),
  defineHandler(SendAnnouncement, [CampaignWrites], ({ context, id, sendAt }, _, writes) => {
    const { actor } = context;
    const type = 'announcement.scheduled';
    return writes.change(context, 'announcement', id, type, async (current, { manager }, now) => {
      const decision = scheduleAnnouncement(current, { sendAt, actor }, now);
      if (decision) await assertMayBegin(manager, decision.campaign);
      return decision;
    });
  }),
  defineHandler(CancelAnnouncement, [CampaignWrites], ({ context, id }, _, writes) =>
    writes.change(
      context,
      'announcement',
      id,
      'announcement.cancelled',
      async (current, { manager }, now) => {
        const decision = cancelAnnouncement(current, now);
        if (decision) await query(manager, CANCEL_MESSAGES, [id]);
        return decision;
      },
    ),
  ),
  defineHandler(DeleteRule, [CampaignWrites], async ({ context, id }, _, writes) => {
    const type = 'message_rule.deleted';
    await writes.change(context, 'rule', id, type, (current, { isRepeated }, now) =>
      isRepeated && current.state === 'deleted' ? undefined : deleteRule(current, now),
    );
  }),
];

/** @returns whether there was none with its id */
async function insert(manager: EntityManager, campaign: Campaign): Promise<boolean> {
  const { kind, id, accountId, state, title, text, channels, trigger, createdAt } = campaign;
  const content = [state, title, text, channels, JSON.stringify(trigger)];
  const rows = await query(manager, INSERT, [kind, id, accountId, ...content, createdAt]);
  if (state === 'enabled') await query(manager, START, [kind, id]);
  return rows.length === 1;
}

async function update(
  manager: EntityManager,
  campaign: Campaign,
  { state: former }: Campaign,
): Promise<void> {
  const { kind, id, state, title, text, channels, trigger } = campaign;
  const { sendAt, actor, updatedAt, finishedAt } = campaign;
  const content = [state, title, text, channels, JSON.stringify(trigger)];
  const times = [sendAt, JSON.stringify(actor), updatedAt, finishedAt];
  await query(manager, UPDATE, [kind, id, ...content, ...times]);
  if (state === 'enabled' && former !== state) await query(manager, START, [kind, id]);
}

/**
 * Counts the announcements that begin within 24 hours of a time, under a lock, so that two at once do not both get the
 * last place.
 * @throws RejectedError
 */
async function assertMayBegin(
  manager: EntityManager,
  { id, accountId, sendAt }: Announcement,
): Promise<void> {
  await query(manager, {
    text: 'select pg_advisory_xact_lock(hashtextextended($1, $2))',
    values: [`announcements of ${accountId}`, LOCKS.announcementsPerDay],
  });
  const rows = await query<{ count: number }>(manager, {
    text: `select count(*) as count from campaigns
     where kind = 'announcement' and account_id = $1 and id <> $2 and state in ('scheduled', 'sending', 'sent')
       and send_at > $3::timestamptz - interval '1 day' and send_at < $3::timestamptz + interval '1 day'`,
    values: [accountId, id, sendAt],
  });
  if ((rows[0]?.count ?? 0) < MAX_PER_DAY) return;
  throw new RejectedError(
    { base: [ISSUES.too_many_announcements({ max: MAX_PER_DAY })] },
    'quota_exceeded',
    'Send it at another time.',
  );
}

function audit<K extends CampaignKind>(
  transaction: AuditedTransaction,
  type: string,
  { campaign: { kind, id, accountId }, details }: Decision<K>,
): Promise<void> {
  const subject = { [ENTRIES[kind].id]: id, ...details };
  return transaction.audit({ accountIds: [accountId], type, subject });
}
