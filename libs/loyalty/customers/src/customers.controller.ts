import { Body, Controller, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { CommandContext } from '#kernel/aggregate.js';
import { pathId, readBody, readQuery } from '#http/body.js';
import { Context } from '#http/caller.js';
import { Endpoint } from '#http/endpoint.js';
import { CreateCustomer, UpdateCustomer } from './customer.commands.js';
import {
  createCustomerDto,
  createdCustomerAnswer,
  customerAnswer,
  customerChanges,
  customerFilter,
  customerInput,
  customerListAnswer,
  customerListQuery,
  enrolmentDto,
  updateCustomerDto,
  type CreatedCustomerJson,
  type CustomerJson,
  type CustomerListJson,
} from './customer.dto.js';
import { CustomersService } from './customers.service.js';

@Controller('/api/v1/accounts/:account_id/customers')
export class CustomersController {
  constructor(
    private readonly commands: CommandBus,
    private readonly customers: CustomersService,
  ) {}

  @Get()
  @Endpoint({
    id: 'listCustomers',
    tag: 'Customers',
    summary: 'Search customers, newest first',
    path: ['account_id'],
    query: customerListQuery,
    status: 200,
    answer: customerListAnswer,
    errors: [404, 422],
  })
  list(
    @Context() { accountId }: CommandContext,
    @Query() given: unknown,
  ): Promise<CustomerListJson> {
    const query = readQuery(customerListQuery, given);
    return this.customers.list(accountId, customerFilter(query), query);
  }

  @Get(':id')
  @Endpoint({
    id: 'getCustomer',
    tag: 'Customers',
    summary: 'One customer with their cards',
    path: ['account_id', 'id'],
    status: 200,
    answer: customerAnswer,
    errors: [404],
  })
  show(@Context() { accountId }: CommandContext, @Param('id') id: string): Promise<CustomerJson> {
    return this.customers.find(accountId, pathId(id));
  }

  @Post()
  @Endpoint({
    id: 'createCustomer',
    tag: 'Customers',
    summary: 'Add a customer, with card_id enrolled on that card',
    path: ['account_id'],
    body: createCustomerDto,
    wrapper: 'customer',
    beside: enrolmentDto,
    status: 201,
    answer: createdCustomerAnswer,
    errors: [404, 422],
  })
  async create(
    @Context() context: CommandContext,
    @Body() body: unknown,
  ): Promise<CreatedCustomerJson> {
    const input = await readBody(createCustomerDto.extend(enrolmentDto.shape), body, {
      wrapper: 'customer',
      bare: Object.keys(createCustomerDto.shape),
    });
    return this.commands.execute(
      new CreateCustomer(context, customerInput(input), input.card_id, input.send_card_links),
    );
  }

  @Patch(':id')
  @Endpoint({
    id: 'updateCustomer',
    tag: 'Customers',
    summary: 'Change what is named',
    description:
      'Keys of metadata are merged and external_references added to what is there. Sends customer.updated, unless only external_references changed.',
    path: ['account_id', 'id'],
    body: updateCustomerDto,
    wrapper: 'customer',
    status: 200,
    answer: customerAnswer,
    errors: [404, 422],
  })
  async update(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() body: unknown,
  ): Promise<CustomerJson> {
    const id = pathId(path);
    const input = await readBody(updateCustomerDto, body, {
      wrapper: 'customer',
      bare: Object.keys(createCustomerDto.shape),
      record: () => this.customers.find(context.accountId, id),
    });
    return this.commands.execute(new UpdateCustomer(context, id, customerChanges(input)));
  }
}
