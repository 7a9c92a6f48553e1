import { Body, Controller, Param, Post } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { Endpoint } from '#platform/http/endpoint.js';
import { parsePathId } from '#platform/http/path.js';
import { createRecordLookup } from '#platform/http/record.js';
import { CustomerJson } from './customer.dto.js';
import { MergeDto } from './customer-input.dto.js';
import { CustomersService } from './customers.service.js';
import { MergeCustomers, UnmergeCustomers } from './merging.commands.js';

const CUSTOMER = createRecordLookup(CustomersService, (customers, accountId, { id = '' }) =>
  customers.get(accountId, parsePathId(id)),
);

@Controller('/api/v1/accounts/:account_id/customers/:id')
export class MergingController {
  constructor(private readonly commands: CommandBus) {}

  @Post('merge')
  @Endpoint({
    id: 'mergeCustomers',
    tag: 'Customers',
    summary: 'Merge two customers',
    description:
      'This customer goes on for both: keeps what it has, takes what it lacks, and gets the cards of the other one; where both have a card of one template, the stamps are added together. The other one is found only by id, with merged_into. Sends customer.updated about both, and for stamps that move to another card stamp.removed, stamp.earned and reward.unlocked. Undone by unmerge.',
    path: ['account_id', 'id'],
    status: 200,
    response: CustomerJson,
    errors: [404, 422],
    codes: ['customer_erased', 'customer_merged', 'limit_reached'],
    record: CUSTOMER,
  })
  async merge(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() { from_customer_id: otherId }: MergeDto,
  ): Promise<CustomerJson> {
    return this.commands.execute(
      new MergeCustomers(context, { survivorId: parsePathId(path), otherId }),
    );
  }

  @Post('unmerge')
  @Endpoint({
    id: 'unmergeCustomers',
    tag: 'Customers',
    summary: 'Undo the last merge of a customer',
    description:
      'The other customer has again what the merge took from it; of stamps that were added to another card, as many as are still there. Sends customer.updated about both, and for stamps that go back stamp.removed and stamp.earned.',
    path: ['account_id', 'id'],
    status: 200,
    response: CustomerJson,
    errors: [404, 422],
    codes: ['taken', 'customer_erased', 'customer_merged'],
    record: CUSTOMER,
  })
  async unmerge(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() { from_customer_id: otherId }: MergeDto,
  ): Promise<CustomerJson> {
    return this.commands.execute(
      new UnmergeCustomers(context, { survivorId: parsePathId(path), otherId }),
    );
  }
}
