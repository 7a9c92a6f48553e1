import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import type { CapKind } from '#platform/event-store/port/event-store.js';
import type { PlainTable } from '#platform/event-store/read-models/read-models.js';
import type { PageRange } from '#platform/http/page.js';
import type { Campaign, CampaignKind } from './campaign.js';
import { toCampaignJson, type CampaignJson } from './campaign.dto.js';
import {
  NO_MESSAGES,
  subtractPending,
  type MessageCounts,
  type MessageRecipient,
  type RecipientState,
} from './message-recipient.js';
import { MessageRecipients } from './message-recipients.service.js';
import { ISSUES } from '#translations/issues.js';

export const campaignTable: PlainTable = { table: 'campaigns' };

const CAP = { table: campaignTable.table, ownerColumn: 'account_id' };

/** How many campaigns that are not over a store may have of each kind. */
export const CAMPAIGN_CAPS: Record<CampaignKind, CapKind> = {
  announcement: {
    ...CAP,
    countedCondition: `r.state in ('draft', 'scheduled', 'sending')`,
    issue: ISSUES.too_many_unfinished_announcements,
    resolution: 'Cancel the drafts that you do not need, or wait until one is sent.',
  },
  rule: {
    ...CAP,
    countedCondition: `r.state in ('enabled', 'disabled')`,
    issue: ISSUES.too_many_rules,
    resolution: 'Delete one that you do not need.',
  },
};

const NAMES: Record<CampaignKind, string> = {
  announcement: 'Announcement',
  rule: 'Message rule',
};

/** @property counts null until it is sent */
export type CountedCampaign<K extends CampaignKind> = Campaign<K> & {
  counts: MessageCounts | null;
};

const SELECT = `select kind, id, account_id as "accountId", state, title, text, channels, trigger, send_at as "sendAt", actor,
    created_at as "createdAt", updated_at as "updatedAt", started_at as "startedAt", finished_at as "finishedAt", counts
  from campaigns`;

/** Announcements come newest first, and rules by id. */
const LISTS = {
  announcement: {
    name: 'announcements_list',
    text: `${SELECT} where kind = 'announcement' and state <> 'deleted' and account_id = $1 and id < $2 order by id desc limit $3`,
    start: Number.MAX_SAFE_INTEGER,
  },
  rule: {
    name: 'message_rules_list',
    text: `${SELECT} where kind = 'rule' and state <> 'deleted' and account_id = $1 and id > $2 order by id limit $3`,
    start: 0,
  },
};
const FIND = {
  name: 'campaigns_find',
  text: `${SELECT} where kind = $1 and account_id = $2 and id = $3 and state <> 'deleted'`,
};

const TITLES = {
  name: 'campaigns_titles',
  text: `select id, title from campaigns where kind = $1 and account_id = $2 and id = any ($3)`,
};

const LOCK = `${SELECT} where kind = $1 and account_id = $2 and id = $3 for no key update`;

/** Reads campaigns. */
@Injectable()
export class CampaignsService {
  constructor(
    private readonly pool: Pool,
    private readonly recipients: MessageRecipients,
  ) {}

  async list<K extends CampaignKind>(
    kind: K,
    accountId: number,
    { after, limit }: PageRange,
  ): Promise<CampaignJson[K][]> {
    const { start, ...statement } = LISTS[kind];
    const values = [accountId, after?.[0] ?? start, limit];
    const campaigns = await query<CountedCampaign<K>>(this.pool, { ...statement, values });
    const uncounted = campaigns.filter(({ counts }) => counts === null).map(({ id }) => id);
    const counts = await this.recipients.count(kind, uncounted);
    return campaigns.map((campaign) =>
      toCampaignJson<K>(campaign, campaign.counts ?? counts.get(campaign.id) ?? NO_MESSAGES),
    );
  }

  /** Gets a campaign as the API shows it. @throws NotFoundError */
  async get<K extends CampaignKind>(
    kind: K,
    accountId: number,
    id: number,
  ): Promise<CampaignJson[K]> {
    const campaign = await this.find(kind, accountId, id);
    return toCampaignJson(campaign, await this.count(campaign));
  }

  /** Gets a campaign without what became of its messages. @throws NotFoundError */
  async find<K extends CampaignKind>(
    kind: K,
    accountId: number,
    id: number,
  ): Promise<CountedCampaign<K>> {
    const values = [kind, accountId, id];
    const [campaign] = await query<CountedCampaign<K>>(this.pool, { ...FIND, values });
    if (!campaign) throw new NotFoundError(NAMES[kind]);
    return campaign;
  }

  /** Finds the titles of campaigns, also of those that were deleted. */
  async findTitles(
    kind: CampaignKind,
    accountId: number,
    ids: number[],
  ): Promise<Map<number, string>> {
    if (ids.length === 0) return new Map();
    const values = [kind, accountId, ids];
    const rows = await query<{ id: number; title: string }>(this.pool, { ...TITLES, values });
    return new Map(rows.map(({ id, title }) => [id, title]));
  }

  /** Locks it against changes by others until the transaction ends, also one that was deleted. @throws NotFoundError */
  async lock<K extends CampaignKind>(
    manager: EntityManager,
    kind: K,
    accountId: number,
    id: number,
  ): Promise<Campaign<K>> {
    const [campaign] = await query<Campaign<K>>(manager, LOCK, [kind, accountId, id]);
    if (!campaign) throw new NotFoundError(NAMES[kind]);
    return campaign;
  }

  /** Counts its messages: those of a rule in the last 30 days. */
  async count<K extends CampaignKind>({
    kind,
    id,
    counts,
  }: CountedCampaign<K>): Promise<MessageCounts> {
    return counts ?? (await this.recipients.count(kind, [id])).get(id) ?? NO_MESSAGES;
  }

  /** Counts its messages as `count` does, but as unsent those that a wallet's server or a browser's has not accepted. */
  async countAccepted<K extends CampaignKind>(
    campaign: CountedCampaign<K>,
  ): Promise<MessageCounts> {
    const { kind, accountId, id } = campaign;
    const pending = await this.recipients.countPending(kind, accountId, [id]);
    return subtractPending(await this.count(campaign), pending.get(id));
  }

  /** Lists its messages: of an announcement by customer, of a rule newest first. @throws NotFoundError */
  async listRecipients(
    kind: CampaignKind,
    accountId: number,
    id: number,
    state: RecipientState | null,
    range: PageRange,
  ): Promise<MessageRecipient[]> {
    await this.find(kind, accountId, id);
    return this.recipients.list(kind, id, state, range);
  }
}
