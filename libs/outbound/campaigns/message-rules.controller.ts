import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { Endpoint, type EndpointSpec } from '#platform/http/endpoint.js';
import { Paged, PageQuery, PageReader } from '#platform/http/page.js';
import { parsePathId } from '#platform/http/path.js';
import { createRecordLookup } from '#platform/http/record.js';
import { CreateCampaign, DeleteRule, UpdateCampaign } from './campaign.commands.js';
import { CampaignsService } from './campaigns.service.js';
import {
  CreateMessageRuleDto,
  MessageRuleJson,
  RuleOccasionJson,
  RuleReachJson,
  RuleReachListQuery,
  RuleReachQuery,
  toRuleAttributes,
  toRuleChanges,
  toRuleOccasionJson,
  toRuleReachJson,
  UpdateMessageRuleDto,
} from './message-rule.dto.js';
import {
  MessageRecipientJson,
  RecipientListQuery,
  toMessageRecipientJson,
} from './message-recipient.dto.js';
import { RuleReaches } from './rule-reaches.service.js';

const RULE = createRecordLookup(CampaignsService, (campaigns, accountId, { id = '' }) =>
  campaigns.find('rule', accountId, parsePathId(id)),
);

/** What the operations on the store, and those on one rule, have in common. */
const OF_STORE = {
  tag: 'Messages to customers',
  path: ['account_id'],
} satisfies Partial<EndpointSpec>;
const OF_ONE = {
  ...OF_STORE,
  path: ['account_id', 'id'],
  status: 200,
  record: RULE,
} satisfies Partial<EndpointSpec>;

@Controller('/api/v1/accounts/:account_id/message_rules')
export class MessageRulesController {
  constructor(
    private readonly commands: CommandBus,
    private readonly campaigns: CampaignsService,
    private readonly reaches: RuleReaches,
  ) {}

  @Get()
  @Endpoint({
    ...OF_STORE,
    id: 'listMessageRules',
    summary: 'List message rules',
    description: 'The rules by which a store writes to customers, by id.',
    status: 200,
    response: [MessageRuleJson],
    errors: [404, 422],
  })
  list(
    @Context() { accountId }: CommandContext,
    @Query() page: PageQuery,
    @Paged() pages: PageReader,
  ): Promise<MessageRuleJson[]> {
    return pages.getPage(
      page,
      (range) => this.campaigns.list('rule', accountId, range),
      ({ id }) => [id],
    );
  }

  @Post()
  @Endpoint({
    ...OF_STORE,
    id: 'createMessageRule',
    summary: 'Create a message rule',
    description:
      'Disabled, unless you say otherwise, so that its reach can be looked at first. Each customer gets it once for an occasion.',
    status: 201,
    response: MessageRuleJson,
    errors: [404, 422],
    codes: ['limit_reached'],
  })
  create(
    @Context() context: CommandContext,
    @Body() body: CreateMessageRuleDto,
  ): Promise<MessageRuleJson> {
    return this.commands.execute(
      new CreateCampaign(context, { kind: 'rule', ...toRuleAttributes(body) }),
    );
  }

  @Get(':id')
  @Endpoint({
    ...OF_ONE,
    id: 'getMessageRule',
    summary: 'Show a message rule',
    description: 'One rule, with what became of its messages of the last 30 days.',
    response: MessageRuleJson,
    errors: [404],
  })
  show(
    @Context() { accountId }: CommandContext,
    @Param('id') id: string,
  ): Promise<MessageRuleJson> {
    return this.campaigns.get('rule', accountId, parsePathId(id));
  }

  @Patch(':id')
  @Endpoint({
    ...OF_ONE,
    id: 'updateMessageRule',
    summary: 'Update a message rule',
    description:
      'Only the given fields change; the kind stays. Once enabled, it sends for what happens from then on.',
    response: MessageRuleJson,
    errors: [404, 422],
  })
  update(
    @Context() context: CommandContext,
    @Param('id') id: string,
    @Body() body: UpdateMessageRuleDto,
  ): Promise<MessageRuleJson> {
    const changes = toRuleChanges(body);
    return this.commands.execute(new UpdateCampaign(context, 'rule', parsePathId(id), changes));
  }

  @Delete(':id')
  @Endpoint({
    ...OF_ONE,
    id: 'deleteMessageRule',
    summary: 'Delete a message rule',
    description: 'It sends nothing any more, not even what was queued.',
    status: 204,
    errors: [404],
  })
  async remove(@Context() context: CommandContext, @Param('id') id: string): Promise<void> {
    await this.commands.execute(new DeleteRule(context, parsePathId(id)));
  }

  @Get(':id/reach')
  @Endpoint({
    ...OF_ONE,
    id: 'getMessageRuleReach',
    readsMuch: true,
    summary: 'Count whom a rule would have reached',
    description:
      'In the last days, whether it was enabled or not: from the history, with the cards, rewards and consents as they are today, and without the maximum of a week.',
    response: RuleReachJson,
    errors: [404, 422],
  })
  async getReach(
    @Context() { accountId }: CommandContext,
    @Param('id') id: string,
    @Query() { days }: RuleReachQuery,
  ): Promise<RuleReachJson> {
    const rule = await this.campaigns.find('rule', accountId, parsePathId(id));
    return toRuleReachJson(await this.reaches.count(rule, days));
  }

  @Get(':id/reach/customers')
  @Endpoint({
    ...OF_ONE,
    id: 'listMessageRuleReach',
    readsMuch: true,
    summary: 'List whom a rule would have reached',
    description: 'The occasions of the last days, newest first.',
    response: [RuleOccasionJson],
    errors: [404, 422],
  })
  async listReach(
    @Context() { accountId }: CommandContext,
    @Param('id') id: string,
    @Query() { days, ...page }: RuleReachListQuery,
    @Paged() pages: PageReader,
  ): Promise<RuleOccasionJson[]> {
    const rule = await this.campaigns.find('rule', accountId, parsePathId(id));
    const occasions = await pages.getPage(
      page,
      (range) => this.reaches.list(rule, days, range),
      ({ key }) => key,
    );
    return occasions.map(toRuleOccasionJson);
  }

  @Get(':id/recipients')
  @Endpoint({
    ...OF_ONE,
    id: 'listMessageRuleRecipients',
    readsMuch: true,
    summary: 'List the recipients of a rule',
    description: 'Its messages, newest first, each with its channel and what became of it.',
    response: [MessageRecipientJson],
    errors: [404, 422],
  })
  async listRecipients(
    @Context() { accountId }: CommandContext,
    @Param('id') path: string,
    @Query() { state, ...page }: RecipientListQuery,
    @Paged() pages: PageReader,
  ): Promise<MessageRecipientJson[]> {
    const id = parsePathId(path);
    const recipients = await pages.getPage(
      page,
      (range) => this.campaigns.listRecipients('rule', accountId, id, state, range),
      ({ id: messageId }) => [messageId],
    );
    return recipients.map(toMessageRecipientJson);
  }
}
