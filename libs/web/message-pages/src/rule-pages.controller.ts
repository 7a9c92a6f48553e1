import { Body, Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CommandContext } from '#kernel/aggregate.js';
import type { FieldErrors } from '#kernel/errors.js';
import { TakesForm, type Form } from '#http/body-kinds.js';
import { parsePathId } from '#http/path.js';
import { Throttle } from '#http/throttle.js';
import { CreateMessageRule, UpdateMessageRule } from '#announcements/message-rule.commands.js';
import { toRuleAttributes, type MessageRuleJson } from '#announcements/message-rule.dto.js';
import { RULE_KINDS, type RuleKind } from '#announcements/message-rule.js';
import { MessageRulesService } from '#announcements/message-rules.service.js';
import { buildMessagesPath, createMessageTabs, type MessageTabs } from '#outbox/message-tabs.js';
import {
  ConsoleContext,
  CurrentStore,
  CurrentUser,
  RequiresOperation,
  type EnteredStore,
  type SignedInUser,
} from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { SubmittedForms } from '#pages/submitted-forms.service.js';
import { loadView } from '#pages/view.js';
import { getTranslations } from '#translations/translations.js';
import {
  createRuleForm,
  parseRule,
  readRuleForm,
  toRuleForm,
  type RuleForm,
} from './message-form.dto.js';
import { MESSAGE_STYLE, MessageStores, type FormChoices } from './message-stores.service.js';
import { describeRejection, describeRule, formatSent, type PreviewView } from './message-views.js';

type ListData = {
  tabs: MessageTabs;
  base: string;
  lines: { path: string; title: string; about: string; enabled: boolean; sent: string }[];
  done: string;
};

type FormData = FormChoices & {
  title: string;
  kind: RuleKind;
  action: string;
  back: string;
  receipt: string;
  values: RuleForm;
  errors: FieldErrors;
  errorText: string;
  preview: PreviewView;
};

type FormState = {
  current: MessageRuleJson | null;
  values: RuleForm;
  errors?: FieldErrors;
  errorText?: string;
};

const listView = loadView<ListData>(import.meta.url, './views/rules.eta');
const kindView = loadView<{ base: string; kinds: readonly RuleKind[] }>(
  import.meta.url,
  './views/rule-kinds.eta',
);
const formView = loadView<FormData>(import.meta.url, './views/rule-form.eta');
const MAX_RULES = 100;

/** Serves the list of automatic messages, and the form in which one is written. */
@Controller('app/stores/:account_id/messages/rules')
export class RulePagesController {
  constructor(
    private readonly pages: Pages,
    private readonly rules: MessageRulesService,
    private readonly stores: MessageStores,
    private readonly commands: CommandBus,
    private readonly forms: SubmittedForms,
  ) {}

  @Get()
  @RequiresOperation('listMessageRules')
  async list(
    @CurrentStore() store: EnteredStore,
    @Query('done') done: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const localization = this.pages.localize(request);
    const t = localization.t.messagePages.rules;
    const base = buildRulesPath(store);
    const rules = await this.rules.list(store.id, { after: null, limit: MAX_RULES });
    await this.pages.send(request, reply, {
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
        done: done === 'removed' ? t.done.removed : '',
      },
    });
  }

  @Get('new')
  @RequiresOperation('createMessageRule')
  async begin(
    @CurrentStore() store: EnteredStore,
    @Query('kind') chosen: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const kind = findKind(chosen);
    if (kind === undefined) {
      const { create: title } = this.pages.localize(request).t.messagePages.rules;
      const data = { base: buildRulesPath(store), kinds: RULE_KINDS };
      return this.pages.send(request, reply, { view: kindView, title, data, width: 'form' });
    }
    const { locale } = await this.stores.get(store.id);
    const { suggestions } = getTranslations(locale).t.messagePages.rules;
    const values = createRuleForm(kind, suggestions[kind]);
    await this.sendForm(request, reply, store, { current: null, values });
  }

  @Post()
  @TakesForm()
  @RequiresOperation('createMessageRule')
  @Throttle(60)
  async create(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @CurrentUser() { userId }: SignedInUser,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const kind = findKind(form['kind']);
    if (kind === undefined) {
      await this.pages.redirect(reply, `${buildRulesPath(store)}/new`);
      return;
    }
    const values = readRuleForm(form, kind);
    try {
      const attributes = toRuleAttributes(parseRule(values));
      const { id } = await this.forms.executeOnce({ userId, action: 'rule', form }, (keyed) =>
        this.commands.execute(new CreateMessageRule({ ...context, keyed }, kind, attributes)),
      );
      await this.pages.redirect(reply, `${buildRulesPath(store)}/${id}?done=created`);
    } catch (error) {
      const rejection = describeRejection(error, this.pages.localize(request));
      await this.sendForm(request, reply, store, { current: null, values, ...rejection });
    }
  }

  @Get(':id/edit')
  @RequiresOperation('updateMessageRule')
  async edit(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const current = await this.rules.get(store.id, parsePathId(id));
    await this.sendForm(request, reply, store, { current, values: toRuleForm(current) });
  }

  @Post(':id/edit')
  @TakesForm()
  @RequiresOperation('updateMessageRule')
  @Throttle(60)
  async save(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') id: string,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const current = await this.rules.get(store.id, parsePathId(id));
    const values = readRuleForm(form, current.kind, current.channels);
    try {
      const { enabled: _enabled, ...changes } = toRuleAttributes(parseRule(values));
      await this.commands.execute(new UpdateMessageRule(context, current.id, changes));
      await this.pages.redirect(reply, `${buildRulesPath(store)}/${current.id}?done=saved`);
    } catch (error) {
      const rejection = describeRejection(error, this.pages.localize(request));
      await this.sendForm(request, reply, store, { current, values, ...rejection });
    }
  }

  private async sendForm(
    request: FastifyRequest,
    reply: FastifyReply,
    store: EnteredStore,
    { current, values, errors, errorText = '' }: FormState,
  ): Promise<void> {
    const localization = this.pages.localize(request);
    const { rules: t } = localization.t.messagePages;
    const base = buildRulesPath(store);
    const title = current ? t.edit : t.create;
    await this.pages.send(request, reply, {
      view: formView,
      title,
      status: errors === undefined ? 200 : 422,
      styles: [MESSAGE_STYLE],
      data: {
        ...(await this.stores.listChoices(store.id, values, localization)),
        title,
        kind: values.kind,
        action: current ? `${base}/${current.id}/edit` : base,
        back: current ? `${base}/${current.id}` : base,
        receipt: this.forms.createReceipt(),
        values,
        errors: errors ?? {},
        errorText,
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
