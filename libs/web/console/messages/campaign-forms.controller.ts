import { Body, Controller, Param, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import type { Form } from '#platform/http/body-kinds.js';
import { readFields } from '#platform/http/dtos.js';
import { parsePathId } from '#platform/http/path.js';
import { Throttle } from '#platform/http/throttle.js';
import {
  CreateAnnouncementDto,
  PreviewAnnouncementDto,
  toAnnouncementAttributes,
  toAudience,
} from '#outbound/campaigns/announcement.dto.js';
import { Audiences } from '#outbound/campaigns/audiences.service.js';
import {
  RULE_KINDS,
  type Audience,
  type Occasion,
  type RuleKind,
} from '#outbound/campaigns/campaign.js';
import { CreateCampaign, UpdateCampaign } from '#outbound/campaigns/campaign.commands.js';
import { isChannel } from '#outbound/messages/message-channel.js';
import { CampaignsService } from '#outbound/campaigns/campaigns.service.js';
import {
  CreateMessageRuleDto,
  toRuleAttributes,
  toRuleChanges,
  UpdateMessageRuleDto,
} from '#outbound/campaigns/message-rule.dto.js';
import { loadAsset } from '#web/pages/assets.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { describeRejection, type Rejectable } from '#web/pages/form-errors.js';
import { renderLocalDay } from '#web/pages/local-time.js';
import { type PageResult, showPage, redirectTo } from '#web/pages/page-results.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { loadView } from '#web/pages/view.js';
import { getTranslations, type Localization } from '#translations/translations.js';
import { listMonths } from '../customers/customer-list.controller.js';
import {
  announcementForm,
  DEFAULT_THRESHOLDS,
  findKind,
  parseNumber,
  parseOccasion,
  ruleForm,
  type AnnouncementForm,
  type RuleForm,
} from './message-form.dto.js';
import { MessagePreviews, type PreviewView } from './message-previews.service.js';
import { MESSAGE_STYLE, MessageStores, type FormChoices } from './message-stores.service.js';
import {
  buildSavedPath,
  buildCampaignsPath,
  linkToCampaigns,
  skipWhenBusy,
  type ReachView,
} from './message-views.js';

/** @property rule null: an announcement, which has months and a count of whom it reaches */
type FormData = FormChoices & {
  title: string;
  rule: RuleKind | null;
  action: string;
  months: { value: string; text: string }[];
  reach: ReachView | null;
  preview: PreviewView;
};

/** What a form shows. @property id null for a new campaign */
type FormState<Values> = Rejectable & { id: number | null; values: Values };
type RuleFormState = FormState<RuleForm> & { rule: RuleKind };

const kindView = loadView<{ base: string; kinds: readonly RuleKind[] }>(
  import.meta.url,
  './views/rule-kinds.eta',
);
const formView = loadView<FormData>(import.meta.url, './views/campaign-form.eta');
const SCRIPT = loadAsset(import.meta.url, './assets/message-form.js');

/** Serves the forms in which one-off and automatic messages are written. */
@Controller('app/stores/:account_id/messages')
export class CampaignFormsController {
  constructor(
    private readonly campaigns: CampaignsService,
    private readonly audiences: Audiences,
    private readonly stores: MessageStores,
    private readonly previews: MessagePreviews,
    private readonly times: StoreTimes,
    private readonly commands: FormCommands,
  ) {}

  @GetPage('createAnnouncement', 'announcements/new')
  @Throttle(60)
  beginAnnouncement(
    @CurrentStore() store: EnteredStore,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const values = announcementForm.toValues({ channels: this.stores.listChannels() });
    return this.showAnnouncementForm(localization, store, { id: null, values });
  }

  @PostForm('createAnnouncement', 'announcements')
  createAnnouncement(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    return this.saveAnnouncement(localization, store, context, { id: null, form });
  }

  @GetPage('updateAnnouncement', 'announcements/:id/edit')
  @Throttle(60)
  async editAnnouncement(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { id, ...current } = await this.campaigns.get(
      'announcement',
      store.id,
      parsePathId(path),
    );
    const zone = await this.times.getTimeZone(store.id);
    const { inactive_since: since } = current;
    const values = announcementForm.toValues({
      ...current,
      inactive_since: since && renderLocalDay(since, zone),
    });
    return this.showAnnouncementForm(localization, store, { id, values });
  }

  @PostForm('updateAnnouncement', 'announcements/:id/edit')
  async updateAnnouncement(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { id } = await this.campaigns.find('announcement', store.id, parsePathId(path));
    return this.saveAnnouncement(localization, store, context, { id, form });
  }

  @GetPage('createMessageRule', 'rules/new')
  @Throttle(60)
  async beginRule(
    @CurrentStore() store: EnteredStore,
    @Query('kind') chosen: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const rule = findKind(chosen);
    if (rule === undefined) {
      const { create: title } = localization.t.messagePages.rules;
      const data = { base: buildCampaignsPath(store, 'rule'), kinds: RULE_KINDS };
      const breadcrumb = linkToCampaigns(store, 'rule', localization.t);
      return showPage({ view: kindView, title, breadcrumb, data, width: 'form' });
    }
    const locale = await this.previews.getLocale(store.id);
    const { suggestions } = getTranslations(locale).t.messagePages.rules;
    const suggestion = {
      ...suggestions[rule],
      threshold: DEFAULT_THRESHOLDS[rule],
      channels: this.stores.listChannels(),
    };
    const values = ruleForm.toValues(suggestion);
    return this.showRuleForm(localization, store, { id: null, rule, values });
  }

  @PostForm('createMessageRule', 'rules')
  async createRule(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const rule = findKind(form['kind']);
    if (rule === undefined) return redirectTo(`${buildCampaignsPath(store, 'rule')}/new`);
    return this.saveRule(localization, store, context, { id: null, rule, form });
  }

  @GetPage('updateMessageRule', 'rules/:id/edit')
  @Throttle(60)
  async editRule(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { id, kind, ...current } = await this.campaigns.get('rule', store.id, parsePathId(path));
    const values = ruleForm.toValues(current);
    return this.showRuleForm(localization, store, { id, rule: kind, values });
  }

  @PostForm('updateMessageRule', 'rules/:id/edit')
  async updateRule(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { id, trigger } = await this.campaigns.find('rule', store.id, parsePathId(path));
    return this.saveRule(localization, store, context, { id, rule: trigger.kind, form });
  }

  /** Saves an announcement by the rules of the API, in the store's time zone; or only counts whom it would reach. */
  private async saveAnnouncement(
    localization: Localization,
    store: EnteredStore,
    context: CommandContext,
    { id, form }: { id: number | null; form: Form },
  ): Promise<PageResult> {
    const state = { id, values: announcementForm.read(form) };
    if (form['step'] === 'count') return this.showAnnouncementForm(localization, store, state);
    try {
      const zone = await this.times.getTimeZone(store.id);
      const values = await this.restoreTime(store, state, zone);
      const input = readFields(CreateAnnouncementDto, values, zone);
      const attributes = toAnnouncementAttributes(input);
      const saved = await this.commands.execute(
        id === null
          ? new CreateCampaign(context, { kind: 'announcement', state: 'draft', ...attributes })
          : new UpdateCampaign(context, 'announcement', id, attributes),
      );
      return redirectTo(buildSavedPath(store, 'announcement', saved, id === null));
    } catch (error) {
      const errors = describeRejection(error, localization);
      return this.showAnnouncementForm(localization, store, { ...state, errors });
    }
  }

  private async saveRule(
    localization: Localization,
    store: EnteredStore,
    context: CommandContext,
    { id, rule, form }: { id: number | null; rule: RuleKind; form: Form },
  ): Promise<PageResult> {
    const values = ruleForm.read(form);
    if (form['step'] === 'count') {
      return this.showRuleForm(localization, store, { id, rule, values });
    }
    try {
      const input = readFields(CreateMessageRuleDto, { ...values, kind: rule });
      const command =
        id === null
          ? new CreateCampaign(context, { kind: 'rule', ...toRuleAttributes(input) })
          : new UpdateCampaign(
              context,
              'rule',
              id,
              toRuleChanges(readFields(UpdateMessageRuleDto, values)),
            );
      const saved = await this.commands.execute(command);
      return redirectTo(buildSavedPath(store, 'rule', saved, id === null));
    } catch (error) {
      const errors = describeRejection(error, localization);
      return this.showRuleForm(localization, store, { id, rule, values, errors });
    }
  }

  private async showAnnouncementForm(
    localization: Localization,
    store: EnteredStore,
    { id, values, errors }: FormState<AnnouncementForm>,
  ): Promise<PageResult> {
    const { anyMonth } = localization.t.messagePages.form;
    const months = [{ value: '', text: anyMonth }, ...listMonths(localization.locale)];
    const {
      preview,
      reach,
      errors: uncounted,
    } = await this.count(localization, store, {
      id,
      values,
    });
    const inputs = announcementForm.toInputs(values);
    return showPage({
      ...(await this.createForm(localization, store, {
        id,
        values,
        rule: null,
        months,
        reach,
        preview,
      })),
      inputs,
      errors: errors ?? uncounted,
      status: errors ? 422 : 200,
    });
  }

  private async showRuleForm(
    localization: Localization,
    store: EnteredStore,
    { id, rule, values, errors }: RuleFormState,
  ): Promise<PageResult> {
    const trigger = parseOccasion(rule, values);
    const preview = await this.createPreview(store, values, trigger, localization);
    const own = { id, values, rule, months: [], reach: null, preview };
    const inputs = ruleForm.toInputs(values);
    return showPage({ ...(await this.createForm(localization, store, own)), inputs, errors });
  }

  private async createForm(
    localization: Localization,
    store: EnteredStore,
    {
      id,
      values,
      ...own
    }: Pick<FormData, 'rule' | 'months' | 'reach' | 'preview'> &
      FormState<AnnouncementForm | RuleForm>,
  ) {
    const { form, rules } = localization.t.messagePages;
    const t = own.rule === null ? form : rules;
    const title = id === null ? t.create : t.edit;
    const list = linkToCampaigns(
      store,
      own.rule === null ? 'announcement' : 'rule',
      localization.t,
    );
    const page =
      id === null ? null : { path: `${list.path}/${id}`, text: values.title || list.text };
    const data: FormData = {
      ...own,
      ...(await this.stores.listChoices(store.id, values, localization)),
      title,
      action: page ? `${page.path}/edit` : list.path,
    };
    return {
      view: formView,
      title,
      breadcrumb: page ?? list,
      styles: [MESSAGE_STYLE],
      scripts: [SCRIPT],
      allow: { 'connect-src': ["'self'"] },
      data,
    };
  }

  private async createPreview(
    { id }: EnteredStore,
    values: AnnouncementForm | RuleForm,
    trigger: Audience | Occasion | null,
    localization: Localization,
  ): Promise<PreviewView> {
    const channels = values.channels.filter(isChannel);
    const recipient = trigger && (await this.previews.findRecipient(id, trigger, channels));
    const about = trigger ?? { cardId: parseNumber(values.card_id) };
    return this.previews.create(id, values, about, recipient, localization);
  }

  /** Restores the time of the day that the form shows without it, unless another day was chosen. */
  private async restoreTime(
    store: EnteredStore,
    { id, values }: FormState<AnnouncementForm>,
    zone: string,
  ): Promise<AnnouncementForm> {
    if (id === null) return values;
    const { trigger } = await this.campaigns.find('announcement', store.id, id);
    const { inactiveSince: since } = trigger;
    const isSameDay = since !== null && renderLocalDay(since, zone) === values.inactive_since;
    return isSameDay ? { ...values, inactive_since: since } : values;
  }

  /** Counts whom the entered message would reach, and shows it to one of them; null with errors in what decides that. */
  private async count(
    localization: Localization,
    store: EnteredStore,
    state: FormState<AnnouncementForm>,
  ): Promise<Rejectable & { preview: PreviewView; reach: ReachView | null }> {
    try {
      const zone = await this.times.getTimeZone(store.id);
      const values = await this.restoreTime(store, state, zone);
      const input = readFields(PreviewAnnouncementDto, values, zone);
      const { channels } = input;
      const audience = toAudience(input);
      const reach = await skipWhenBusy(this.audiences.preview(store.id, audience, channels));
      const preview = await this.createPreview(store, values, audience, localization);
      return {
        preview,
        reach: reach && (await this.stores.describeReach(store.id, reach, preview, localization)),
      };
    } catch (error) {
      const errors = describeRejection(error, localization);
      const preview = await this.createPreview(store, state.values, null, localization);
      return { preview, reach: null, errors };
    }
  }
}
