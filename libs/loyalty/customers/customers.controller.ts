import { Body, Controller, Get, Param, Patch, Post, Query, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply } from 'fastify';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { AsOfQuery } from '#platform/http/as-of.js';
import { Context } from '#platform/http/caller.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { Paged, PageReader } from '#platform/http/page.js';
import { parsePathId } from '#platform/http/path.js';
import { createRecordLookup } from '#platform/http/record.js';
import { CreateCustomer, UpdateCustomer } from './customer.commands.js';
import { EraseCustomer } from './erasing.commands.js';
import { CreatedCustomerJson, CustomerJson } from './customer.dto.js';
import {
  toCustomerChanges,
  CustomerCreationDto,
  toCustomerInput,
  UpdateCustomerDto,
} from './customer-input.dto.js';
import { toCustomerFilter, CustomerListJson, CustomerListQuery } from './customer-list.dto.js';
import { CustomersService } from './customers.service.js';
import { FindOrCreateCustomer } from './find-or-create.commands.js';

const CUSTOMER = createRecordLookup(CustomersService, (customers, accountId, { id = '' }) =>
  customers.get(accountId, parsePathId(id)),
);

@DeclaresTag({
  name: 'Customers',
  order: 50,
  description:
    'The members of a store’s programme, found by a search term or by another system’s id.',
})
@Controller('/api/v1/accounts/:account_id/customers')
export class CustomersController {
  constructor(
    private readonly commands: CommandBus,
    private readonly customers: CustomersService,
  ) {}

  @Get()
  @Endpoint({
    id: 'listCustomers',
    readsMuch: true,
    tag: 'Customers',
    summary: 'List or search customers',
    description:
      'Newest first, page by page. To read all of them, begin with a blank cursor and follow the Link header: then they come by id, each exactly once. Filters narrow each other down; those who are merged or erased are found by none.',
    path: ['account_id'],
    status: 200,
    response: CustomerListJson,
    errors: [404, 422],
  })
  list(
    @Context() { accountId }: CommandContext,
    @Query() query: CustomerListQuery,
    @Paged() pages: PageReader,
  ): Promise<CustomerListJson> {
    const filter = toCustomerFilter(query);
    const { cursor, items } = query;
    if (cursor === undefined) return this.customers.list(accountId, filter, query);
    const page = { limit: items, cursor: cursor === '' ? null : cursor };
    return this.customers.listById(accountId, filter, items, (find) =>
      pages.getPage(page, find, ({ id }) => [id]),
    );
  }

  @Get(':id')
  @Endpoint({
    id: 'getCustomer',
    tag: 'Customers',
    summary: 'Show a customer',
    description: 'One customer with their cards.',
    path: ['account_id', 'id'],
    status: 200,
    response: CustomerJson,
    errors: [404, 422],
    record: CUSTOMER,
  })
  async show(
    @Context() { accountId }: CommandContext,
    @Param('id') path: string,
    @Query() { as_of: time }: AsOfQuery,
  ): Promise<CustomerJson> {
    const id = parsePathId(path);
    return time === null
      ? this.customers.get(accountId, id)
      : this.customers.getPast(accountId, id, time);
  }

  @Post()
  @Endpoint({
    id: 'createCustomer',
    tag: 'Customers',
    summary: 'Create a customer',
    description:
      'With card_id, the customer is enrolled on that card at once. Sends customer.created, and what an enrolment sends. With if_exists `return` it may be sent again and again: there is one customer, who is created the first time.',
    path: ['account_id'],
    status: 201,
    otherStatus: {
      status: 200,
      description: 'With if_exists `return`: the customer who was there already',
    },
    response: CreatedCustomerJson,
    errors: [404, 422],
    codes: ['taken', 'ambiguous', 'quota_exceeded', 'customer_erased', 'customer_merged'],
  })
  async create(
    @Context() context: CommandContext,
    @Body() body: CustomerCreationDto,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<CreatedCustomerJson> {
    const creation = new CreateCustomer(
      context,
      toCustomerInput(body),
      body.card_id,
      body.send_card_links,
    );
    if (body.if_exists === 'error') return this.commands.execute(creation);
    const { customer, isNew } = await this.commands.execute(new FindOrCreateCustomer(creation));
    if (!isNew) reply.status(200);
    return customer;
  }

  @Patch(':id')
  @Endpoint({
    id: 'updateCustomer',
    tag: 'Customers',
    summary: 'Update a customer',
    description:
      'Only the given fields change. metadata is merged key by key, and external_references are added to the existing ones. Sends customer.updated, unless only external_references changed.',
    path: ['account_id', 'id'],
    status: 200,
    response: CustomerJson,
    errors: [404, 422],
    codes: ['taken', 'customer_erased', 'customer_merged'],
    record: CUSTOMER,
  })
  async update(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() body: UpdateCustomerDto,
  ): Promise<CustomerJson> {
    return this.commands.execute(
      new UpdateCustomer(context, parsePathId(path), toCustomerChanges(body)),
    );
  }

  @Post(':id/erase')
  @Endpoint({
    id: 'eraseCustomer',
    tag: 'Customers',
    summary: 'Erase a customer',
    description:
      'Their history and every total stay. Destroys all personal data: names, e-mail address, phone, birthday, metadata, external references, and notes and reasons in the history. It cannot be undone. Sends customer.updated. Erasing somebody again is 204 too.',
    path: ['account_id', 'id'],
    status: 204,
    errors: [404],
    codes: ['customer_merged'],
    record: CUSTOMER,
  })
  async erase(@Context() context: CommandContext, @Param('id') path: string): Promise<void> {
    await this.commands.execute(new EraseCustomer(context, parsePathId(path)));
  }
}
