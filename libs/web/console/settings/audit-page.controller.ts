import { Controller, Query } from '@nestjs/common';
import type { Actor } from '#platform/kernel/aggregate.js';
import { ActorNames } from '#loyalty/history/actor-names.service.js';
import type { AuditEntryJson } from '#loyalty/history/audit-entry.dto.js';
import { AuditService } from '#loyalty/history/audit.service.js';
import { Members } from '#identity/members.service.js';
import { CampaignsService } from '#outbound/campaigns/campaigns.service.js';
import { CurrentStore, type EnteredStore, Localized, GetPage } from '#web/pages/current-user.js';
import { loadView } from '#web/pages/view.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { type PageResult, showPage } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { parseCursor, takePage } from '#web/pages/page-query.js';
import { getAuditLabel, describeChanges, describeDetails, describeActor } from './audit-labels.js';

type AuditView = {
  entries: {
    at: string;
    who: string;
    from: string;
    what: string;
    about: string;
    details: string;
    changes: string[];
  }[];
  /** The id of the last entry on this page, if there are more. */
  next: number | null;
  isFirst: boolean;
};

const view = loadView<AuditView>(import.meta.url, './views/audit.eta');

const PAGE_SIZE = 50;
const NO_FILTER = { type: null, actor: null, from: null, to: null };

/** Shows the audit log of users, API tokens, webhook subscriptions and exports. */
@Controller('app/stores/:account_id/audit')
export class AuditPageController {
  constructor(
    private readonly audit: AuditService,
    private readonly names: ActorNames,
    private readonly members: Members,
    private readonly campaigns: CampaignsService,
    private readonly times: StoreTimes,
  ) {}

  @GetPage('audit.read')
  async show(
    @Query('after') afterParameter: unknown,
    @Localized() localization: Localization,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const after = parseCursor(afterParameter);
    const range = { before: after?.[0] ?? null, limit: PAGE_SIZE + 1 };
    const rows = await this.audit.list(store.id, NO_FILTER, range);
    const { page: entries, last } = takePage(rows, PAGE_SIZE);
    const about = await this.names.findNames(entries.map(({ json }) => findSubject(json.subject)));
    const others = await this.findOtherNames(
      store.id,
      entries.map(({ json }) => json.subject),
    );
    const { log, pageOf } = localization.t.console;
    const { day, minute } = await this.times.createFormats(store.id, localization.locale);
    return showPage({
      view,
      title: pageOf({ page: log.title, store: store.name }),
      data: {
        entries: entries.map(({ json }, i) => ({
          at: minute(new Date(json.recorded_at)),
          who: describeActor(json.type, json.actor, localization),
          from: json.ip_address ?? '',
          what: getAuditLabel(json.type, localization),
          about: isAboutSelf(json) ? '' : (about[i] ?? others(json.subject) ?? ''),
          details: describeDetails(json.subject, day, localization),
          changes: describeChanges(json.subject, localization),
        })),
        next: last?.id ?? null,
        isFirst: after === null,
      },
    });
  }

  /** Finds what messages and invitations are called. The entries do not say, since they are never deleted. */
  private async findOtherNames(
    accountId: number,
    subjects: object[],
  ): Promise<(subject: object) => string | undefined> {
    const listIds = (property: string) =>
      subjects.flatMap((subject) => findId(subject, property) ?? []);
    const [addresses, titles, ruleTitles] = await Promise.all([
      this.members.findInvitedAddresses(accountId, listIds('invitation_id')),
      this.campaigns.findTitles('announcement', accountId, listIds('announcement_id')),
      this.campaigns.findTitles('rule', accountId, listIds('message_rule_id')),
    ]);
    const names = Object.entries({
      invitation_id: addresses,
      announcement_id: titles,
      message_rule_id: ruleTitles,
    });
    return (subject) =>
      names.map(([property, byId]) => byId.get(findId(subject, property) ?? 0)).find(Boolean);
  }
}

/** Finds an id in the subject of an entry. */
function findId(subject: object, property: string): number | undefined {
  return (subject as Record<string, number | undefined>)[property];
}

/** Tells whether the entry is about the actor, whose name it shows anyway. */
function isAboutSelf({ actor, subject }: AuditEntryJson): boolean {
  const { type, id } = findSubject(subject);
  return type === 'user' && actor.type === type && actor.id === id;
}

/** Finds the person or token that an entry is about, to show its name. */
function findSubject(subject: object): Actor {
  const {
    token_id: token,
    user_id: user,
    customer_id: customer,
  } = subject as { token_id?: number; user_id?: number; customer_id?: number };
  if (token !== undefined) return { type: 'token', id: token };
  if (customer !== undefined) return { type: 'customer', id: customer };
  return user === undefined ? { type: 'system', id: 0 } : { type: 'user', id: user };
}
