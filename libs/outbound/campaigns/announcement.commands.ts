import { CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { getNow } from '#platform/kernel/clock.js';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { findChanges } from '#platform/kernel/changes.js';
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
  RecordCommand,
  UpdateCommand,
} from '#platform/event-store/commands/record-commands.js';
import { checkCap } from '#platform/event-store/port/caps.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import {
  cancelAnnouncement,
  changeAnnouncement,
  scheduleAnnouncement,
  type Announcement,
  type AnnouncementAttributes,
  type AnnouncementChanges,
} from './announcement.js';
import { toAnnouncementJson, type AnnouncementJson } from './announcement.dto.js';
import {
  announcementCap,
  announcementTable,
  AnnouncementsService,
} from './announcements.service.js';
import { NO_MESSAGES } from './message-recipient.js';
import { ISSUES } from '#translations/issues.js';

const MAX_UNFINISHED = 20;
/** Announcements of a store that begin in 24 hours. */
const MAX_PER_DAY = 10;

export class CreateAnnouncement extends CreateCommand<AnnouncementAttributes, AnnouncementJson> {}

@CommandHandler(CreateAnnouncement)
export class CreateAnnouncementHandler implements ICommandHandler<CreateAnnouncement> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly templates: TemplatesService,
    private readonly pool: Pool,
  ) {}

  /** @throws NotFoundError for a card of another store */
  async execute({ context, attributes }: CreateAnnouncement): Promise<AnnouncementJson> {
    const { accountId } = context;
    const { cardId } = attributes.audience;
    if (cardId !== null) await this.templates.get(accountId, cardId);
    const createdAt = getNow();
    return withNewId(this.pool, announcementTable.table, (id) =>
      this.insert(context, {
        ...attributes,
        id,
        accountId,
        state: 'draft',
        sendAt: null,
        createdAt,
        updatedAt: createdAt,
        startedAt: null,
        finishedAt: null,
      }),
    );
  }

  private insert(context: CommandContext, created: Announcement): Promise<AnnouncementJson> {
    const { id, accountId, title, text, channels, audience, createdAt } = created;
    return this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      await checkCap(manager, { kind: announcementCap, owner: accountId, id, max: MAX_UNFINISHED });
      const rows = await query(manager, {
        text: `insert into announcements (id, account_id, state, title, text, channels, audience, created_at, updated_at)
         values ($1, $2, 'draft', $3, $4, $5, $6, $7, $7) on conflict do nothing returning id`,
        values: [id, accountId, title, text, channels, JSON.stringify(audience), createdAt],
      });
      const isNew = rows.length === 1;
      if (!isNew && !transaction.isRepeated) throw new IdTakenError(announcementTable.table, id);
      if (isNew) await audit(transaction, created, 'announcement.created');
      return toAnnouncementJson(created, NO_MESSAGES);
    });
  }
}

export class UpdateAnnouncement extends UpdateCommand<AnnouncementChanges, AnnouncementJson> {}

@CommandHandler(UpdateAnnouncement)
export class UpdateAnnouncementHandler implements ICommandHandler<UpdateAnnouncement> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly announcements: AnnouncementsService,
    private readonly templates: TemplatesService,
  ) {}

  /** @throws RejectedError once it has begun */
  async execute({ context, id, changes }: UpdateAnnouncement): Promise<AnnouncementJson> {
    const { accountId } = context;
    const cardId = changes.audience?.cardId ?? null;
    if (cardId !== null) await this.templates.get(accountId, cardId);
    return this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      const current = await this.announcements.lock(manager, accountId, id);
      const changed = changeAnnouncement(current, changes);
      const { title, text, channels, audience } = changed;
      const differences = findChanges(flattenAudience(current), flattenAudience(changed));
      if (Object.keys(differences).length === 0) return toAnnouncementJson(current, NO_MESSAGES);
      const updatedAt = getNow();
      // Whoever has read the former audience to begin just now has lost the lease, and begins anew.
      await query(manager, {
        text: `update announcements
         set title = $2, text = $3, channels = $4, audience = $5, updated_at = $6, due_at = send_at, process = null
         where id = $1`,
        values: [id, title, text, channels, JSON.stringify(audience), updatedAt],
      });
      await audit(transaction, current, 'announcement.updated', { changes: differences });
      return toAnnouncementJson({ ...changed, updatedAt }, NO_MESSAGES);
    });
  }
}

export class SendAnnouncement extends RecordCommand<AnnouncementJson> {
  constructor(
    context: CommandContext,
    id: number,
    /** Null: now. */
    readonly sendAt: Date | null,
  ) {
    super(context, id);
  }
}

@CommandHandler(SendAnnouncement)
export class SendAnnouncementHandler implements ICommandHandler<SendAnnouncement> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly announcements: AnnouncementsService,
  ) {}

  /** @throws RejectedError in another state, and when too many have begun */
  async execute({ context, id, sendAt }: SendAnnouncement): Promise<AnnouncementJson> {
    const { accountId } = context;
    const sent = await this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      const current = await this.announcements.lock(manager, accountId, id);
      const now = getNow();
      const at = scheduleAnnouncement(current, sendAt, now);
      if (at === undefined) return toAnnouncementJson(current, NO_MESSAGES);
      await assertMayBegin(transaction, current, at);
      await query(manager, {
        text: `update announcements set state = 'scheduled', send_at = $2, due_at = $2, attempts = 0, updated_at = $3, actor = $4
         where id = $1`,
        values: [id, at, now, JSON.stringify(context.actor)],
      });
      await audit(transaction, current, 'announcement.scheduled', { send_at: at.toISOString() });
      const scheduled: Announcement = {
        ...current,
        state: 'scheduled',
        sendAt: at,
        updatedAt: now,
      };
      return toAnnouncementJson(scheduled, NO_MESSAGES);
    });
    // One that is being sent has messages already.
    return sent.state === 'scheduled' ? sent : this.announcements.get(accountId, id);
  }
}

export class CancelAnnouncement extends RecordCommand<AnnouncementJson> {}

@CommandHandler(CancelAnnouncement)
export class CancelAnnouncementHandler implements ICommandHandler<CancelAnnouncement> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly announcements: AnnouncementsService,
  ) {}

  /** @throws RejectedError once it has begun */
  execute({ context, id }: CancelAnnouncement): Promise<AnnouncementJson> {
    const { accountId } = context;
    return this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      const current = await this.announcements.lock(manager, accountId, id);
      if (!cancelAnnouncement(current)) return toAnnouncementJson(current, NO_MESSAGES);
      const now = getNow();
      await query(manager, {
        text: `update announcements set state = 'cancelled', due_at = null, finished_at = $2, updated_at = $2 where id = $1`,
        values: [id, now],
      });
      await audit(transaction, current, 'announcement.cancelled');
      const cancelled = { ...current, finishedAt: now, updatedAt: now };
      return toAnnouncementJson({ ...cancelled, state: 'cancelled' }, NO_MESSAGES);
    });
  }
}

/**
 * Counts the announcements that begin within 24 hours of a time, under a lock, so that two at once do not both get the
 * last place.
 * @throws RejectedError
 */
async function assertMayBegin(
  { manager }: AuditedTransaction,
  { id, accountId }: Announcement,
  at: Date,
): Promise<void> {
  await query(manager, {
    text: 'select pg_advisory_xact_lock(hashtextextended($1, $2))',
    values: [`announcements of ${accountId}`, LOCKS.announcementsPerDay],
  });
  const rows = await query<{ count: number }>(manager, {
    text: `select count(*) as count from announcements
     where account_id = $1 and id <> $2 and state in ('scheduled', 'sending', 'sent')
       and send_at > $3::timestamptz - interval '1 day' and send_at < $3::timestamptz + interval '1 day'`,
    values: [accountId, id, at],
  });
  if ((rows[0]?.count ?? 0) < MAX_PER_DAY) return;
  throw new RejectedError(
    { base: [ISSUES.too_many_announcements({ max: MAX_PER_DAY })] },
    'quota_exceeded',
    'Send it at another time.',
  );
}

function flattenAudience({ audience, ...announcement }: Announcement) {
  return { ...announcement, ...audience };
}

function audit(
  transaction: AuditedTransaction,
  { id, accountId }: Announcement,
  type: string,
  details: object = {},
): Promise<void> {
  const subject = { announcement_id: id, ...details };
  return transaction.audit({ accountIds: [accountId], type, subject });
}

export const announcementHandlers = [
  CreateAnnouncementHandler,
  UpdateAnnouncementHandler,
  SendAnnouncementHandler,
  CancelAnnouncementHandler,
];
