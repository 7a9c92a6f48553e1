import { Body, Controller, Param, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import type { Form } from '#platform/http/body-kinds.js';
import { parsePathId } from '#platform/http/path.js';
import { Throttle } from '#platform/http/throttle.js';
import { DeleteRule, UpdateCampaign } from '#outbound/campaigns/campaign.commands.js';
import type { RuleOccasion } from '#outbound/campaigns/message-rule.dto.js';
import { CampaignsService } from '#outbound/campaigns/campaigns.service.js';
import { RuleReaches } from '#outbound/campaigns/rule-reaches.service.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { findFlashMessage, parseCursor } from '#web/pages/page-query.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { loadView } from '#web/pages/view.js';
import type { Localization } from '#translations/translations.js';
import { type PageResult, showPage, redirectTo, askToConfirm } from '#web/pages/page-results.js';
import { MESSAGE_STYLE, MessageStores } from './message-stores.service.js';
import {
  createRecipientsView,
  describeRule,
  RECIPIENT_PAGE_SIZE,
  skipWhenBusy,
  toReachView,
  type PreviewView,
  type ReachView,
  type RecipientsView,
} from './message-views.js';
import { buildRulesPath } from './rule-pages.controller.js';

/** The days that the page of a rule looks back. */
const DAYS = 30;
const MAX_OCCASIONS = 10;

type OccasionLine = { customer: string; path: string | null; when: string; channel: string };

type RuleData = {
  base: string;
  list: string;
  title: string;
  about: string;
  enabled: boolean;
  flash: string;
  quiet: string;
  reach: ReachView | null;
  byDay: { day: string; people: string; share: number }[];
  occasions: OccasionLine[];
  preview: PreviewView;
  recipients: RecipientsView;
};

const view = loadView<RuleData>(import.meta.url, './views/rule.eta');

/** Serves the page of a rule: whom it would have reached, and its switch. */
@Controller('app/stores/:account_id/messages/rules/:id')
export class RuleSwitchingController {
  constructor(
    private readonly campaigns: CampaignsService,
    private readonly reaches: RuleReaches,
    private readonly stores: MessageStores,
    private readonly times: StoreTimes,
    private readonly commands: FormCommands,
  ) {}

  @GetPage('getMessageRule')
  @Throttle(30)
  async show(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Query() query: { done?: unknown; after?: unknown },
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const id = parsePathId(path);
    const rule = await this.campaigns.find('rule', store.id, id);
    const t = localization.t.messagePages.rules;
    const base = `${buildRulesPath(store)}/${id}`;
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    const reach = await skipWhenBusy(this.reaches.count(rule, DAYS));
    const after = parseCursor(query.after);
    const range = { after: null, limit: MAX_OCCASIONS };
    const occasions = reach && (await skipWhenBusy(this.reaches.list(rule, DAYS, range)));
    const recipients = await this.campaigns.listRecipients('rule', store.id, id, null, {
      after,
      limit: RECIPIENT_PAGE_SIZE + 1,
    });
    return showPage({
      view,
      title: rule.title,
      styles: [MESSAGE_STYLE],
      data: {
        base,
        list: buildRulesPath(store),
        title: rule.title,
        about: describeRule(rule.trigger, localization),
        enabled: rule.state === 'enabled',
        flash: findFlashMessage(query.done, t.done),
        quiet: await this.stores.describeQuietHours(store.id, localization),
        reach: reach && toReachView(reach, rule.channels, DAYS, localization),
        byDay: toDays(reach?.byDay ?? [], localization),
        occasions: (occasions ?? []).map((one) => toOccasionLine(one, store, minute, localization)),
        preview: await this.stores.createPreview(store.id, rule, localization),
        recipients: createRecipientsView(
          recipients,
          { base, accountId: store.id, after, key: 'id', time: minute },
          localization,
        ),
      },
    });
  }

  @PostForm('updateMessageRule', 'switch', 30)
  async switch(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Body() form: Form,
  ): Promise<PageResult> {
    const id = parsePathId(path);
    const enabled = form['enabled'] === 'yes';
    const state = enabled ? 'enabled' : 'disabled';
    await this.commands.execute(new UpdateCampaign(context, 'rule', id, { state }));
    const done = enabled ? 'on' : 'off';
    return redirectTo(`${buildRulesPath(store)}/${id}?done=${done}`);
  }

  @GetPage('deleteMessageRule', 'delete')
  async askToDelete(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const rule = await this.campaigns.find('rule', store.id, parsePathId(path));
    const t = localization.t.messagePages.rules;
    const base = `${buildRulesPath(store)}/${rule.id}`;
    return askToConfirm({
      question: t.askRemove,
      about: rule.title,
      text: t.askRemoveText,
      yes: t.removeYes,
      no: t.removeNo,
      back: base,
    });
  }

  @PostForm('deleteMessageRule', 'delete')
  async delete(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
  ): Promise<PageResult> {
    await this.commands.execute(new DeleteRule(context, parsePathId(path)));
    return redirectTo(`${buildRulesPath(store)}?done=removed`);
  }
}

function toOccasionLine(
  { customerId, customerName, at, channel }: RuleOccasion,
  { id }: EnteredStore,
  minute: (time: Date) => string,
  { t: { messagePages: t } }: Localization,
): OccasionLine {
  return {
    customer: customerName ?? t.recipients.erased,
    path: customerName === null ? null : `/app/stores/${id}/customers/${customerId}`,
    when: minute(at),
    channel: channel === null ? t.reach.unreached : t.channels[channel],
  };
}

/** @param byDay only days with somebody, as YYYY-MM-DD */
function toDays(
  byDay: readonly { day: string; people: number }[],
  { locale }: Localization,
): RuleData['byDay'] {
  const numbers = new Intl.NumberFormat(locale);
  const days = new Intl.DateTimeFormat(locale, {
    day: 'numeric',
    month: 'short',
    timeZone: 'UTC',
  });
  const max = Math.max(1, ...byDay.map(({ people }) => people));
  return byDay.map(({ day, people }) => ({
    day: days.format(new Date(`${day}T00:00:00Z`)),
    people: numbers.format(people),
    share: people / max,
  }));
}
