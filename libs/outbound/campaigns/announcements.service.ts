import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import type { CapKind } from '#platform/event-store/port/event-store.js';
import type { PlainTable } from '#platform/event-store/read-models/read-models.js';
import type { PageRange } from '#platform/http/page.js';
import type { Announcement } from './announcement.js';
import { toAnnouncementJson, type AnnouncementJson } from './announcement.dto.js';
import {
  NO_MESSAGES,
  type MessageCounts,
  type MessageRecipient,
  type RecipientState,
} from './message-recipient.js';
import { MessageRecipients } from './message-recipients.service.js';
import { ISSUES } from '#translations/issues.js';

export const announcementTable: PlainTable = { table: 'announcements' };

export const announcementCap: CapKind = {
  table: announcementTable.table,
  ownerColumn: 'account_id',
  countedCondition: `r.state in ('draft', 'scheduled', 'sending')`,
  issue: ISSUES.too_many_unfinished_announcements,
  resolution: 'Cancel the drafts that you do not need, or wait until one is sent.',
};

/** @property counts null until it is sent */
type CountedAnnouncement = Announcement & { counts: MessageCounts | null };

const ANNOUNCEMENT_COLUMNS =
  'id, account_id as "accountId", state, title, text, channels, audience, send_at as "sendAt", created_at as "createdAt", updated_at as "updatedAt", started_at as "startedAt", finished_at as "finishedAt"';

const LIST = {
  name: 'announcements_list',
  text: `select ${ANNOUNCEMENT_COLUMNS}, counts from announcements
         where account_id = $1 and id < $2 order by id desc limit $3`,
};
const FIND = {
  name: 'announcements_find',
  text: `select ${ANNOUNCEMENT_COLUMNS}, counts from announcements where id = $1 and account_id = $2`,
};

/** Reads announcements for the API. */
@Injectable()
export class AnnouncementsService {
  constructor(
    private readonly pool: Pool,
    private readonly recipients: MessageRecipients,
  ) {}

  /** Lists announcements, newest first. */
  async list(accountId: number, { after, limit }: PageRange): Promise<AnnouncementJson[]> {
    const before = after?.[0] ?? Number.MAX_SAFE_INTEGER;
    const rows = await query<CountedAnnouncement>(this.pool, {
      ...LIST,
      values: [accountId, before, limit],
    });
    return this.addCounts(rows);
  }

  /** @throws NotFoundError */
  async get(accountId: number, id: number): Promise<AnnouncementJson> {
    const rows = await query<CountedAnnouncement>(this.pool, { ...FIND, values: [id, accountId] });
    const [announcement] = await this.addCounts(rows);
    if (!announcement) throw new NotFoundError('Announcement');
    return announcement;
  }

  /** Locks it against changes by others until the transaction ends. @throws NotFoundError */
  async lock(manager: EntityManager, accountId: number, id: number): Promise<Announcement> {
    const rows = await query<CountedAnnouncement>(manager, {
      text: `${FIND.text} for no key update`,
      values: [id, accountId],
    });
    const [row] = rows;
    if (!row) throw new NotFoundError('Announcement');
    return row;
  }

  /** Lists its messages, by customer. @throws NotFoundError */
  async listRecipients(
    accountId: number,
    id: number,
    state: RecipientState | null,
    range: PageRange,
  ): Promise<MessageRecipient[]> {
    await this.get(accountId, id);
    return this.recipients.listOfAnnouncement(id, state, range);
  }

  private async addCounts(rows: CountedAnnouncement[]): Promise<AnnouncementJson[]> {
    const unfinished = rows.filter(({ counts }) => counts === null).map(({ id }) => id);
    const counts = await this.recipients.countOfAnnouncements(unfinished);
    return rows.map((row) =>
      toAnnouncementJson(row, row.counts ?? counts.get(row.id) ?? NO_MESSAGES),
    );
  }
}
