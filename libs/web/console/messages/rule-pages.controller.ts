import { Body, Controller, Param, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import type { Form } from '#platform/http/body-kinds.js';
import { readFields } from '#platform/http/dtos.js';
import { parsePathId } from '#platform/http/path.js';
import { CreateCampaign, UpdateCampaign } from '#outbound/campaigns/campaign.commands.js';
import {
  CreateMessageRuleDto,
  toRuleAttributes,
  toRuleChanges,
  UpdateMessageRuleDto,
  type MessageRuleJson,
} from '#outbound/campaigns/message-rule.dto.js';
import { RULE_KINDS, type RuleKind } from '#outbound/campaigns/campaign.js';
import { CampaignsService } from '#outbound/campaigns/campaigns.service.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import { loadView } from '#web/pages/view.js';
import { getTranslations, type Localization } from '#translations/translations.js';
import { type PageResult, showPage, redirectTo } from '#web/pages/page-results.js';
import { describeRejection, type Rejectable } from '#web/pages/form-errors.js';
import { buildMessagesPath, createMessageTabs, type MessageTabs } from '../outbox/message-tabs.js';
import { ruleForm, type RuleForm } from './message-form.dto.js';
import { MESSAGE_STYLE, MessageStores, type FormChoices } from './message-stores.service.js';
import { describeRule, formatSent, type PreviewView } from './message-views.js';

type ListData = {
  tabs: MessageTabs;
  base: string;
  lines: { path: string; title: string; about: string; enabled: boolean; sent: string }[];
  flash: string;
};

type FormData = FormChoices & {
  title: string;
  kind: RuleKind;
  action: string;
  back: string;
  preview: PreviewView;
};

type FormState = Rejectable & {
  current: MessageRuleJson | null;
  kind: RuleKind;
  values: RuleForm;
};

const listView = loadView<ListData>(import.meta.url, './views/rules.eta');
const kindView = loadView<{ base: string; kinds: readonly RuleKind[] }>(
  import.meta.url,
  './views/rule-kinds.eta',
);
const formView = loadView<FormData>(import.meta.url, './views/rule-form.eta');
const MAX_RULES = 100;
const DEFAULT_THRESHOLDS: Record<RuleKind, number | null> = {
  stamps_away: 1,
  reward_unused: 14,
  birthday: null,
  inactive: 60,
};

/** Serves the list of automatic messages, and the form in which one is written. */
@Controller('app/stores/:account_id/messages/rules')
export class RulePagesController {
  constructor(
    private readonly campaigns: CampaignsService,
    private readonly stores: MessageStores,
    private readonly commands: FormCommands,
  ) {}

  @GetPage('listMessageRules')
  async list(
    @CurrentStore() store: EnteredStore,
    @Query('done') done: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const t = localization.t.messagePages.rules;
    const base = buildRulesPath(store);
    const rules = await this.campaigns.list('rule', store.id, { after: null, limit: MAX_RULES });
    return showPage({
      view: listView,
      title: t.title,
      data: {
        tabs: createMessageTabs(store, 'rules', localization.t),
        base,
        lines: rules.map((rule) => ({
          path: `${base}/${rule.id}`,
          title: rule.title,
          about: describeRule(rule, localization),
          enabled: rule.enabled,
          sent: formatSent(rule.counts, localization),
        })),
        flash: findFlashMessage(done, t.done),
      },
    });
  }

  @GetPage('createMessageRule', 'new')
  async begin(
    @CurrentStore() store: EnteredStore,
    @Query('kind') chosen: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const kind = findKind(chosen);
    if (kind === undefined) {
      const { create: title } = localization.t.messagePages.rules;
      const data = { base: buildRulesPath(store), kinds: RULE_KINDS };
      return showPage({ view: kindView, title, data, width: 'form' });
    }
    const { locale } = await this.stores.get(store.id);
    const { suggestions } = getTranslations(locale).t.messagePages.rules;
    const suggestion = { ...suggestions[kind], threshold: DEFAULT_THRESHOLDS[kind] };
    const values = ruleForm.toValues(suggestion);
    return this.showForm(localization, store, { current: null, kind, values });
  }

  @PostForm('createMessageRule')
  async create(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const kind = findKind(form['kind']);
    if (kind === undefined) {
      return redirectTo(`${buildRulesPath(store)}/new`);
    }
    const values = ruleForm.read(form);
    try {
      const attributes = toRuleAttributes(readFields(CreateMessageRuleDto, { ...values, kind }));
      const { id } = await this.commands.execute(new CreateCampaign(context, 'rule', attributes));
      return redirectTo(`${buildRulesPath(store)}/${id}?done=created`);
    } catch (error) {
      const errors = describeRejection(error, localization);
      return this.showForm(localization, store, { current: null, kind, values, errors });
    }
  }

  @GetPage('updateMessageRule', ':id/edit')
  async edit(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const current = await this.campaigns.get('rule', store.id, parsePathId(id));
    const values = ruleForm.toValues(current);
    return this.showForm(localization, store, { current, kind: current.kind, values });
  }

  @PostForm('updateMessageRule', ':id/edit')
  async save(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') id: string,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const current = await this.campaigns.get('rule', store.id, parsePathId(id));
    const { kind } = current;
    const values = ruleForm.read(form);
    try {
      const changes = toRuleChanges(readFields(UpdateMessageRuleDto, values));
      await this.commands.execute(new UpdateCampaign(context, 'rule', current.id, changes));
      return redirectTo(`${buildRulesPath(store)}/${current.id}?done=saved`);
    } catch (error) {
      const errors = describeRejection(error, localization);
      return this.showForm(localization, store, { current, kind, values, errors });
    }
  }

  private async showForm(
    localization: Localization,
    store: EnteredStore,
    { current, kind, values, errors }: FormState,
  ): Promise<PageResult> {
    const { rules: t } = localization.t.messagePages;
    const base = buildRulesPath(store);
    const title = current ? t.edit : t.create;
    return showPage({
      view: formView,
      title,
      inputs: ruleForm.toInputs(values),
      errors,
      styles: [MESSAGE_STYLE],
      data: {
        ...(await this.stores.listChoices(store.id, values, localization)),
        title,
        kind,
        action: current ? `${base}/${current.id}/edit` : base,
        back: current ? `${base}/${current.id}` : base,
        preview: await this.stores.createPreview(store.id, values, localization),
      },
    });
  }
}

/** Builds the path of the pages, from the root of the service. */
export function buildRulesPath(store: EnteredStore): string {
  return `${buildMessagesPath(store)}/rules`;
}

function findKind(value: unknown): RuleKind | undefined {
  return RULE_KINDS.find((kind) => kind === value);
}
