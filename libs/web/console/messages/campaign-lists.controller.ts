import { Controller, Query } from '@nestjs/common';
import { getNow } from '#platform/kernel/clock.js';
import { subtractPending } from '#outbound/campaigns/message-recipient.js';
import { MessageRecipients } from '#outbound/campaigns/message-recipients.service.js';
import { CampaignsService } from '#outbound/campaigns/campaigns.service.js';
import { CurrentStore, type EnteredStore, Localized, GetPage } from '#web/pages/current-user.js';
import { findFlashMessage, parseCursor, takePage } from '#web/pages/page-query.js';
import { type PageResult, redirectTo, showPage } from '#web/pages/page-results.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { MessageStores } from './message-stores.service.js';
import { loadView } from '#web/pages/view.js';
import type { Localization } from '#translations/translations.js';
import { createMessageTabs, type Tabs } from '../outbox/message-tabs.js';
import {
  buildCampaignsPath,
  describeRule,
  describeRuleState,
  describeState,
  describeWait,
  formatSent,
  type Mood,
} from './message-views.js';

/** A line of a list, which has either times, or what was sent. */
type Line = {
  path: string;
  title: string;
  about: string;
  state: string;
  mood: Mood;
  when: string | null;
  sent: string | null;
};

/** @property texts what differs between the kinds */
type ListData = {
  tabs: Tabs;
  base: string;
  texts: { title: string; about: string; add: string; none: string; name: string; sent: string };
  lines: Line[];
  flash: string;
  older: string | null;
};

const view = loadView<ListData>(import.meta.url, './views/campaigns.eta');
const PAGE_SIZE = 30;
const MAX_RULES = 100;

/** Serves the lists of one-off and of automatic messages. */
@Controller('app/stores/:account_id/messages')
export class CampaignListsController {
  constructor(
    private readonly campaigns: CampaignsService,
    private readonly recipients: MessageRecipients,
    private readonly times: StoreTimes,
    private readonly stores: MessageStores,
  ) {}

  @GetPage('listAnnouncements')
  redirectToAnnouncements(@CurrentStore() store: EnteredStore): PageResult {
    return redirectTo(buildCampaignsPath(store, 'announcement'));
  }

  @GetPage('listAnnouncements', 'announcements')
  async listAnnouncements(
    @CurrentStore() store: EnteredStore,
    @Query('after') afterParameter: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { announcements: t } = localization.t.messagePages;
    const base = buildCampaignsPath(store, 'announcement');
    const range = { after: parseCursor(afterParameter), limit: PAGE_SIZE + 1 };
    const announcements = await this.campaigns.list('announcement', store.id, range);
    const { page, last } = takePage(announcements, PAGE_SIZE);
    const ids = page.map(({ id }) => id);
    const pending = await this.recipients.countPending('announcement', store.id, ids);
    const sending = page.filter(({ state }) => state === 'sending').map(({ id }) => id);
    const waits = await this.recipients.findWaits(sending);
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    return showPage({
      view,
      title: t.title,
      data: {
        tabs: createMessageTabs(store, 'announcements', localization.t),
        base,
        texts: { ...t, add: t.write, name: t.columns.title, sent: '' },
        lines: await Promise.all(
          page.map(async ({ id, title, state, counts, send_at, updated_at }): Promise<Line> => ({
            path: `${base}/${id}`,
            title,
            about: '',
            ...describeState(
              state,
              isDue(send_at),
              subtractPending(counts, pending.get(id)),
              localization,
            ),
            ...describeWait(waits.get(id), minute, localization),
            when: minute(
              state === 'scheduled' && send_at !== null
                ? await this.stores.findAudible(store.id, new Date(send_at))
                : new Date(send_at ?? updated_at),
            ),
            sent: null,
          })),
        ),
        flash: '',
        older: last ? `${base}?after=${last.id}` : null,
      },
    });
  }

  @GetPage('listMessageRules', 'rules')
  async listRules(
    @CurrentStore() store: EnteredStore,
    @Query('done') done: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const t = localization.t.messagePages.rules;
    const base = buildCampaignsPath(store, 'rule');
    const rules = await this.campaigns.list('rule', store.id, { after: null, limit: MAX_RULES });
    const ids = rules.map(({ id }) => id);
    const pending = await this.recipients.countPending('rule', store.id, ids);
    return showPage({
      view,
      title: t.title,
      data: {
        tabs: createMessageTabs(store, 'rules', localization.t),
        base,
        texts: { ...t, name: t.columns.rule, sent: t.columns.sent },
        lines: rules.map((rule): Line => {
          const counts = subtractPending(rule.counts, pending.get(rule.id));
          const reach = { people: counts.people, reached: counts.sent + counts.queued };
          return {
            path: `${base}/${rule.id}`,
            title: rule.title,
            about: describeRule(rule, localization),
            ...describeRuleState(rule.enabled, reach, localization),
            when: null,
            sent: formatSent(counts, localization),
          };
        }),
        flash: findFlashMessage(done, t.done),
        older: null,
      },
    });
  }
}

function isDue(sendAt: string | null): boolean {
  return sendAt !== null && new Date(sendAt) <= getNow();
}
